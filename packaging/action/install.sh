#!/usr/bin/env bash
# Installs gake for action.yml: from the release archive of this machine's processor, whose
# checksum is compared, or from $ARCHIVE, a file or URL.
set -euo pipefail

folder=$RUNNER_TEMP/gake
mkdir -p "$folder"
archive=$ARCHIVE
if [ -z "$archive" ]; then
    if [ "$(uname -s)" != Linux ]; then
        echo "::error title=gake::gake runs on Linux runners"
        exit 1
    fi
    version=${VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' "$GITHUB_ACTION_PATH/Cargo.toml" | head -1)}
    name=gake-$version-$(uname -m)-unknown-linux-musl.tar.gz
    release=${GITHUB_SERVER_URL:-https://github.com}/$REPOSITORY/releases/download/v$version
    curl --fail --silent --show-error --location --retry 3 --output-dir "$folder" \
        --remote-name "$release/$name" --remote-name "$release/SHA256SUMS"
    (cd "$folder" && grep -F "  $name" SHA256SUMS | sha256sum --check --quiet --strict)
    archive=$folder/$name
elif [[ $archive == http://* || $archive == https://* ]]; then
    curl --fail --silent --show-error --location --retry 3 --output "$folder/gake.tar.gz" "$archive"
    archive=$folder/gake.tar.gz
fi
# The archive has one folder, named after the version.
tar -xzf "$archive" -C "$folder" --strip-components=1
echo "$folder" >> "$GITHUB_PATH"
"$folder/gake" --version
