//! What a program is told into which no tool is linked.
#![cfg(feature = "linked")]

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use tool_sdk::Registry;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

/// Collects the messages of warnings.
#[derive(Clone, Default)]
struct CapturedWarnings(Arc<Mutex<String>>);

impl Visit for CapturedWarnings {
    fn record_debug(&mut self, _: &Field, value: &dyn fmt::Debug) {
        write!(self.0.lock().expect("no test panics with it"), "{value:?}")
            .expect("it is a string");
    }
}

impl Subscriber for CapturedWarnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[test]
fn empty_registry_warns_and_names_the_macro() {
    let warnings = CapturedWarnings::default();
    let registry = tracing::subscriber::with_default(warnings.clone(), Registry::linked);
    assert!(registry.expect("there are no conflicts").is_empty());
    let text = warnings.0.lock().expect("no test panics with it");
    assert!(text.contains("no tools are linked") && text.contains("tool_sdk::link!"), "{text}");
}

#[cfg(feature = "cli")]
#[test]
fn command_line_without_tools_names_the_macro() {
    let (mut stdin, mut out, mut err) = (std::io::empty(), Vec::new(), Vec::new());
    let mut io = tool_sdk::cli::Io::new(&mut stdin, &mut out, &mut err);
    let code = tool_sdk::cli::App::linked().run(["shelf", "list"].map(Into::into), &mut io);
    let err = String::from_utf8_lossy(&err);
    assert!(code == 0 && err.contains("`tool_sdk::link!(the_crate);`"), "{code} {err}");
}
