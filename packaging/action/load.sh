#!/usr/bin/env bash
# Runs gake for action.yml, writes the report and the step summary, and ends with gake's exit code.
set -euo pipefail

report=$RUNNER_TEMP/gake-report
rm -rf "$report"
mkdir -p "$report"

flags=()
# Quotes are read as in a shell, and nothing is expanded or executed.
if [ -n "$ARGS" ]; then
    words=$(xargs printf '%s\n' <<< "$ARGS")
    mapfile -t flags <<< "$words"
fi
while IFS= read -r objective; do
    if [ -n "$objective" ]; then flags+=(--slo "$objective"); fi
done <<< "$SLO"
flags+=(-o text -o "json=$report/gake.json" --html "$report/gake.html")

case $COMMAND in
run)
    flags+=(-o "markdown=$report/gake.md")
    if [ -n "$BASELINE" ]; then
        if why=$(gake history show "$BASELINE" 2>&1 > /dev/null); then
            flags+=(--baseline "$BASELINE" --tolerance "$TOLERANCE" --baseline-inconclusive "$INCONCLUSIVE")
        else
            echo "::notice title=gake::no comparison with a baseline: ${why//$'\n'/ }"
            flags+=(--save)
        fi
    fi
    ;;
find)
    if [ -n "$BASELINE" ]; then
        echo "::error title=gake::a baseline compares runs: command must be run"
        exit 2
    fi
    ;;
*)
    echo "::error title=gake::command is run or find, not $COMMAND"
    exit 2
    ;;
esac

code=0
gake "$COMMAND" "$TARGET" "${flags[@]}" | tee "$report/gake.txt" || code=${PIPESTATUS[0]}
if [ -f "$report/gake.md" ]; then
    cat "$report/gake.md" >> "$GITHUB_STEP_SUMMARY"
elif [ -s "$report/gake.txt" ]; then
    { echo '```'; cat "$report/gake.txt"; echo '```'; } >> "$GITHUB_STEP_SUMMARY"
fi
if [ "$code" = 0 ] && [ "$SAVE_BASELINE" = true ] && [ -n "$BASELINE" ]; then
    gake history baseline "$BASELINE"
fi
{ echo "exit-code=$code"; echo "report=$report"; } >> "$GITHUB_OUTPUT"
exit "$code"
