//! How far things are, on stderr: a bar on a terminal, now and then a line elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Elsewhere than on a terminal: a line at each tenth, but not more often than this.
const BETWEEN_LINES: Duration = Duration::from_secs(2);

/// Whether bars can be drawn.
pub(crate) fn on_terminal() -> bool {
    stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// What is shown of the work that is under way.
pub(crate) struct Progress {
    terminal: bool,
    started: Instant,
    task: Option<Task>,
}

struct Task {
    label: String,
    total: usize,
    bar: ProgressBar,
    /// Whether the finished bar is kept on the screen.
    keep: bool,
    tenth: usize,
    last_line: Option<Instant>,
}

impl Progress {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self { terminal: on_terminal(), started: Instant::now(), task: None }
    }

    /// Steps that are worth a record of their own: a bar that stays, a line for the first of them.
    pub(crate) fn steps(&mut self, label: &str, done: usize, total: usize) {
        self.begin(label, done, total, true);
    }

    /// Counts of which only the present one matters. Called again and again, it begins when the label changes.
    pub(crate) fn count(&mut self, label: &str, done: usize, total: usize, message: &str) {
        if self.task.as_ref().is_none_or(|task| task.label != label) {
            self.begin(label, done, total, false);
        }
        self.advance(done, message);
        if done == total {
            self.end();
        }
    }

    fn begin(&mut self, label: &str, done: usize, total: usize, keep: bool) {
        self.end();
        let target = if self.terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total as u64), target).with_position(done as u64);
        let style =
            ProgressStyle::with_template("{prefix:32} {bar:20} {pos:>4}/{len:4} {eta:>4}  {wide_msg}");
        bar.set_style(style.expect("the template is valid").progress_chars("━╸─"));
        bar.set_prefix(label.to_owned());
        bar.reset_eta();
        bar.tick();
        let last_line = (!keep).then(Instant::now);
        self.task = Some(Task { label: label.into(), total, bar, keep, tenth: 0, last_line });
    }

    /// So much is done now.
    pub(crate) fn advance(&mut self, done: usize, message: &str) {
        let Some(task) = &mut self.task else { return };
        task.bar.set_message(message.to_owned());
        task.bar.set_position(done as u64);
        let tenth = 10 * done / task.total.max(1);
        let due = match task.last_line {
            None => true,
            Some(at) => done == task.total || (tenth > task.tenth && at.elapsed() >= BETWEEN_LINES),
        };
        if !self.terminal && due {
            task.tenth = tenth;
            task.last_line = Some(Instant::now());
            let (seconds, width) = (self.started.elapsed().as_secs(), task.total.to_string().len());
            let line = format!("{seconds:>5} s  {:32} {done:>width$}/{}  {message}", task.label, task.total);
            eprintln!("{}", line.trim_end());
        }
    }

    /// Ends what is shown.
    pub(crate) fn end(&mut self) {
        match self.task.take() {
            Some(task) if task.keep => task.bar.abandon(),
            Some(task) => task.bar.finish_and_clear(),
            None => {}
        }
    }

    /// Says something beside the bar.
    pub(crate) fn note(&self, text: &str) {
        match &self.task {
            Some(task) => task.bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
