//! What follows a run in training: its records, the progress that is shown, and whether it is to stop.

use parallel_r1::train::Result;
use parallel_r1::train::checkpoint::RunFolder;
use parallel_r1::train::metrics::{JsonLines, Sink, StageId, StepMetrics};
use parallel_r1::train::tensorboard::TensorBoard;

use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// Records a run and shows how far it is.
pub(crate) struct Watch {
    records: Vec<Box<dyn Sink>>,
    progress: Progress,
    interrupt: Interrupt,
}

impl Watch {
    /// Follows a run.
    pub(crate) fn open(run: &RunFolder, interrupt: Interrupt) -> Result<Self> {
        let records: Vec<Box<dyn Sink>> = vec![
            Box::new(JsonLines::open(&run.file("metrics.jsonl"))?),
            Box::new(TensorBoard::new(&run.file("tensorboard"))),
        ];
        Ok(Self { records, progress: Progress::new(), interrupt })
    }
}

impl Sink for Watch {
    fn begin(&mut self, stage: &StageId, first: usize) -> Result<()> {
        self.progress.steps(&format!("{} / {}", stage.arm, stage.name), first, stage.steps);
        for sink in &mut self.records {
            sink.begin(stage, first)?;
        }
        Ok(())
    }

    fn step(&mut self, metrics: &StepMetrics) -> Result<()> {
        self.progress.advance(metrics.step, &headline(metrics));
        if metrics.step == metrics.steps {
            self.progress.end();
        }
        for sink in &mut self.records {
            sink.step(metrics)?;
        }
        Ok(())
    }

    fn message(&mut self, text: &str) {
        self.progress.note(text);
    }

    fn evaluating(&mut self, what: &str, done: usize, total: usize) {
        self.progress.count(&format!("eval {what}"), done, total, "");
    }

    fn cancelled(&mut self) -> bool {
        self.interrupt.is_asked()
    }
}

/// The numbers that tell most.
fn headline(metrics: &StepMetrics) -> String {
    let number = |name: &str| Some(format!("{name} {:.3}", metrics.get(name)?));
    let share = |name: &str, key: &str| Some(format!("{name} {:.0} %", 100.0 * metrics.get(key)?));
    let parts = [
        number("loss"),
        number("reward"),
        share("accuracy", "accuracy"),
        share("parallel", "parallel_ratio"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}
