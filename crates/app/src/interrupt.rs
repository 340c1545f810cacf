//! Ctrl-C: the first asks a run to stop at the next good place, the second ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

/// Exit code of a process that was interrupted, as shells have it: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// Becomes true when somebody wants the run to stop.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on to Ctrl-C, and to requests of the system to end. `said` is what the first of them is answered.
    pub(crate) fn listen(said: &'static str) -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let asked = interrupt.clone();
        let handler = move || {
            if asked.0.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED);
            }
            eprintln!("\n{said}");
        };
        ctrlc::set_handler(handler).context("cannot listen to Ctrl-C")?;
        Ok(interrupt)
    }

    /// Whether to stop.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
