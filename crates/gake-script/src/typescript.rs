//! Strips types from TypeScript, once for all users; lines stay the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use rquickjs::{CatchResultExt, CaughtError, Context, Function, Object, Runtime};

/// `typescript/` as one script, made by `cargo xtask ui`.
const STRIPPER: &str = include_str!("typescript.js");

/// Bytes of the thread's stack: the parser is recursive.
const STACK_BYTES: usize = 16 << 20;
const PARSER_STACK_BYTES: usize = STACK_BYTES - (1 << 20);
const PARSER_HEAP_BYTES: usize = 1 << 30;

/// The time limit of one module.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Why a module cannot be converted to JavaScript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeScriptError {
    /// It is not valid TypeScript. Line and column begin at 1.
    Syntax {
        /// What the parser found.
        message: String,
        /// Of the source.
        line: u32,
        /// Of the source.
        column: u32,
    },
    /// It is too large, or the parser is broken.
    Failed(String),
}

impl fmt::Display for TypeScriptError {
    /// The rest of a message that begins with the name of the module.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { message, line, column } => {
                write!(f, ": Line {line}:{} {message}", column.saturating_sub(1))
            }
            Self::Failed(why) => write!(f, ": the types cannot be stripped: {why}"),
        }
    }
}

/// Whether a module is TypeScript, by the extension of its path or URL.
pub fn is_typescript(name: &str) -> bool {
    let is_remote = name.starts_with("https://");
    let end = name.find(['?', '#']).filter(|_| is_remote).unwrap_or(name.len());
    name[..end].ends_with(".ts")
}

/// The JavaScript of a test's TypeScript modules, by module name.
#[derive(Default)]
pub struct StrippedModules {
    known: Mutex<HashMap<String, Arc<str>>>,
}

impl StrippedModules {
    /// The JavaScript of a module. Blocks.
    pub fn javascript(&self, name: &str, text: &str) -> Result<Arc<str>, TypeScriptError> {
        // Locked meanwhile: users of other threads wait instead of repeating the work.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(javascript) = known.get(name) {
            return Ok(Arc::clone(javascript));
        }
        let javascript: Arc<str> = strip(text)?.into();
        known.insert(name.to_owned(), Arc::clone(&javascript));
        Ok(javascript)
    }
}

fn strip(text: &str) -> Result<String, TypeScriptError> {
    // The caller may be on the small stack of a user.
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("typescript".to_owned()).stack_size(STACK_BYTES);
        let stripping = builder.spawn_scoped(scope, || strip_here(text));
        let stripping = stripping.map_err(|error| TypeScriptError::Failed(error.to_string()))?;
        let ended = stripping.join();
        ended.unwrap_or_else(|_| Err(TypeScriptError::Failed("the parser panicked".to_owned())))
    })
}

fn strip_here(text: &str) -> Result<String, TypeScriptError> {
    let failed = |error: &dyn fmt::Display| TypeScriptError::Failed(error.to_string());
    let runtime = Runtime::new().map_err(|error| failed(&error))?;
    runtime.set_memory_limit(PARSER_HEAP_BYTES);
    runtime.set_max_stack_size(PARSER_STACK_BYTES);
    let deadline = Instant::now() + TIMEOUT;
    runtime.set_interrupt_handler(Some(Box::new(move || Instant::now() >= deadline)));
    let context = Context::full(&runtime).map_err(|error| failed(&error))?;
    context.with(|ctx| {
        let run = || -> rquickjs::Result<String> {
            ctx.eval::<(), _>(STRIPPER)?;
            let stripper: Object<'_> = ctx.globals().get("typescript")?;
            stripper.get::<_, Function<'_>>("strip")?.call((text,))
        };
        run().catch(&ctx).map_err(|caught| refusal(&caught, text))
    })
}

/// The exception of the parser: a syntax error has its location.
fn refusal(caught: &CaughtError<'_>, text: &str) -> TypeScriptError {
    let CaughtError::Exception(exception) = caught else {
        return TypeScriptError::Failed(caught.to_string());
    };
    let message = exception.message().unwrap_or_default();
    let location = || -> rquickjs::Result<(u32, u32)> {
        let location: Object<'_> = exception.as_object().get("loc")?;
        Ok((location.get("line")?, location.get("column")?))
    };
    match location() {
        Ok((line, column)) => {
            let message = message.trim_end_matches(&format!(" ({line}:{column})"));
            let mut rest = text.lines().skip(line.saturating_sub(1) as usize);
            let last = rest.next().unwrap_or_default();
            let tail = last.get(column.saturating_sub(1) as usize..).unwrap_or_default();
            let is_end = tail.trim().is_empty() && rest.all(|line| line.trim().is_empty());
            let message = match message {
                "Unexpected token" if is_end => "Unexpected end of file",
                other => other,
            };
            TypeScriptError::Syntax { message: message.to_owned(), line, column }
        }
        Err(_) => TypeScriptError::Failed(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The JSON of `expression` after a TypeScript text.
    fn value(text: &str, expression: &str) -> String {
        let javascript = strip(text).unwrap();
        assert_eq!(javascript.lines().count(), text.lines().count(), "{javascript}");
        let runtime = Runtime::new().unwrap();
        let context = Context::full(&runtime).unwrap();
        let whole = format!("{}\nJSON.stringify({expression})", javascript.replace("export ", ""));
        context.with(|ctx| ctx.eval(whole).catch(&ctx).map_err(|error| error.to_string())).unwrap()
    }

    #[test]
    fn types_are_stripped() {
        let text = "import { Options } from 'k6/options';
            import type { A } from './a.ts';
            enum Color { Red, Green = 'g', Blue = 4, Next }
            abstract class Base<T> {
                declare gone: T;
                constructor(private readonly a: number, public b?: T) {}
                abstract f(): void;
            }
            class User extends Base<string> { f(): asserts this is User {} }
            function over(a: string): string;
            function over(a: any) { return <any>a satisfies unknown as string; }
            const options: Options = { vus: over('1')! };
            const later = async <T,>(a: T): Promise<
                T
            > => a;";
        let seen = value(text, "[Color, new User(1, 'x'), options, typeof later]");
        assert_eq!(
            seen,
            r#"[{"0":"Red","4":"Blue","5":"Next","Red":0,"Green":"g","Blue":4,"Next":5},{"a":1,"b":"x"},{"vus":"1"},"function"]"#
        );
    }

    #[test]
    fn namespaces_become_objects() {
        let text = "namespace N {
                export const a = 1, q = { b: 2 };
                export function g(): number { return a + hidden }
                const hidden = 4
                export let [m, { n: o }] = [1, { n: 2 }]
                export enum E { X }
                export type T = string
                export namespace Deep { export const d = a }
            }
            namespace N { export const later = a + 1; }
            namespace A.B { export const c: number = 3 }
            class C {}
            namespace C { export interface Q { a: number } }
            class F {}
            namespace F { export const s = 's' }
            declare namespace X { const x: number }
            N.m = 7;";
        let seen = value(text, "[N, N.g(), A, Object.keys(C), F.s, typeof X]");
        assert_eq!(
            seen,
            r#"[{"a":1,"q":{"b":2},"m":7,"o":2,"E":{"0":"X","X":0},"Deep":{"d":1},"later":2},5,{"B":{"c":3}},[],"s","undefined"]"#
        );
    }

    #[test]
    fn a_syntax_error_has_its_location() {
        let error = strip("const a: number = 1;\n\nconst b: = 3;").unwrap_err();
        let expected =
            TypeScriptError::Syntax { message: "Unexpected token".to_owned(), line: 3, column: 10 };
        assert_eq!(error, expected);
        assert_eq!(format!("a.ts{error}"), "a.ts: Line 3:9 Unexpected token");
    }

    #[test]
    fn deep_nesting_ends_with_an_error() {
        let deep = "(".repeat(200_000);
        assert!(matches!(strip(&deep), Err(TypeScriptError::Failed(_))));
    }

    #[test]
    fn typescript_is_known_by_its_extension() {
        for (name, expected) in [
            ("file:///a.ts", true),
            ("file:///a.ts.js", false),
            ("file:///a#b.ts", true),
            ("https://a.test/b.ts?c#sha256=00", true),
            ("https://a.test/b.js?c.ts", false),
        ] {
            assert_eq!(is_typescript(name), expected, "{name}");
        }
    }
}
