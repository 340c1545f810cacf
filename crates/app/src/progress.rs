//! How far things are, on stderr: a bar on a terminal, now and then a line elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

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

/// What is counted.
#[derive(Clone, Copy)]
enum Unit {
    Things,
    Bytes,
}

struct Task {
    label: String,
    unit: Unit,
    total: u64,
    bar: ProgressBar,
    /// Whether the finished bar is kept on the screen.
    keep: bool,
    tenth: u64,
    last_line: Option<Instant>,
}

impl Task {
    /// How much is done, as text.
    fn count(&self, done: u64) -> String {
        match self.unit {
            Unit::Things => format!("{done:>0$}/{1}", self.total.to_string().len(), self.total),
            Unit::Bytes => format!("{} of {}", HumanBytes(done), HumanBytes(self.total)),
        }
    }
}

impl Progress {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self { terminal: on_terminal(), started: Instant::now(), task: None }
    }

    /// Steps that are worth a record of their own: a bar that stays, a line for the first of them.
    pub(crate) fn steps(&mut self, label: &str, done: usize, total: usize) {
        self.begin(label, Unit::Things, done as u64, total as u64, true);
    }

    /// Counts of which only the present one matters. Called again and again, it begins when the label changes.
    pub(crate) fn count(&mut self, label: &str, done: usize, total: usize, message: &str) {
        self.passing(label, Unit::Things, done as u64, total as u64, message);
    }

    /// The same for bytes.
    pub(crate) fn bytes(&mut self, label: &str, done: u64, total: u64, message: &str) {
        self.passing(label, Unit::Bytes, done, total, message);
    }

    fn passing(&mut self, label: &str, unit: Unit, done: u64, total: u64, message: &str) {
        if self.task.as_ref().is_none_or(|task| task.label != label) {
            self.begin(label, unit, done, total, false);
        }
        self.show(done, message);
        if done == total {
            self.end();
        }
    }

    fn begin(&mut self, label: &str, unit: Unit, done: u64, total: u64, keep: bool) {
        self.end();
        let target = if self.terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target).with_position(done);
        let template = match unit {
            Unit::Things => "{prefix:32} {bar:20} {pos:>4}/{len:4} {eta:>4}  {wide_msg}",
            Unit::Bytes => "{prefix:32} {bar:20} {bytes}/{total_bytes} {bytes_per_sec} {eta:>4}  {wide_msg}",
        };
        let style = ProgressStyle::with_template(template);
        bar.set_style(style.expect("the template is valid").progress_chars("━╸─"));
        bar.set_prefix(label.to_owned());
        bar.reset_eta();
        bar.tick();
        let last_line = (!keep).then(Instant::now);
        self.task = Some(Task { label: label.into(), unit, total, bar, keep, tenth: 0, last_line });
    }

    /// So much is done now.
    pub(crate) fn advance(&mut self, done: usize, message: &str) {
        self.show(done as u64, message);
    }

    fn show(&mut self, done: u64, message: &str) {
        let Some(task) = &mut self.task else { return };
        task.bar.set_message(message.to_owned());
        task.bar.set_position(done);
        let tenth = 10 * done / task.total.max(1);
        let due = match task.last_line {
            None => true,
            Some(at) => done == task.total || (tenth > task.tenth && at.elapsed() >= BETWEEN_LINES),
        };
        if !self.terminal && due {
            task.tenth = tenth;
            task.last_line = Some(Instant::now());
            let seconds = self.started.elapsed().as_secs();
            let line = format!("{seconds:>5} s  {:32} {}  {message}", task.label, task.count(done));
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
