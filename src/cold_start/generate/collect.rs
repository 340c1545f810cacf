//! The journal's answers made into a data set: judged, chosen, assembled, written. The same journal gives the same
//! bytes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use parallel_r1_verify::extract;
use serde::Serialize;

use super::report::{Count, Refused, Report, Row};
use super::{Entry, GenerateError, Generation, Journal, Judged, Part, Result, Shape, name, names};
use crate::cold_start::assemble::choose;
use crate::cold_start::check::{Answer, Mended, mend};
use crate::cold_start::dedupe::{Deduper, Fingerprint};
use crate::cold_start::prompts::{Template, Values};
use crate::cold_start::teacher::without_thinking;
use crate::data::Problem;
use crate::prompt::{Message, Tag};

/// The rows of a run folder.
const ROWS: &str = "data.jsonl";
/// The answers that are no rows.
const REFUSED: &str = "rejected.jsonl";
/// The account of both.
const REPORT: &str = "report.json";

/// What there is of a sample.
enum Sample {
    Unanswered,
    Failed(Entry),
    Judged(Entry, Judged),
}

/// A solution that passed the checks.
struct Solution {
    sample: usize,
    mended: Mended,
    entry: Entry,
}

/// What has been written so far.
struct Output {
    rows: Lines,
    refused: Lines,
    report: Report,
    deduper: Deduper,
}

impl Generation<'_> {
    /// Writes the data set, what was refused and the account of both into a folder.
    pub fn collect(&self, journal: &mut Journal, folder: &Path) -> Result<Report> {
        let mut out = Output {
            rows: Lines::create(&folder.join(ROWS))?,
            refused: Lines::create(&folder.join(REFUSED))?,
            report: self.blank_report(journal),
            deduper: Deduper::new(self.settings.duplicate_similarity),
        };
        for problem in &self.problems.asked {
            let samples = self.samples(problem, journal)?;
            samples.iter().enumerate().try_for_each(|(i, sample)| out.count(problem, i, sample))?;
            let solutions = passed(samples);
            match self.settings.shape {
                Shape::Assembled => self.assemble(problem, solutions, journal, &mut out)?,
                Shape::Any | Shape::Parallel => self.keep(problem, solutions, &mut out)?,
            }
        }
        out.report.complete = out.report.unanswered == 0;
        let mut account = Lines::create(&folder.join(REPORT))?;
        account.add(&out.report)?;
        [out.rows, out.refused, account].into_iter().try_for_each(Lines::finish)?;
        Ok(out.report)
    }

    fn blank_report(&self, journal: &Journal) -> Report {
        Report {
            problems: self.problems.asked.len(),
            repeated: self.problems.repeated,
            unreadable: Count::of(&self.problems.unreadable),
            contaminated: Count::of(&self.problems.contaminated),
            wanted: self.problems.asked.len() * self.settings.samples,
            spent: journal.spent(),
            ..Report::default()
        }
    }

    /// All samples of a problem.
    fn samples(&self, problem: &Problem, journal: &mut Journal) -> Result<Vec<Sample>> {
        let read = |sample| {
            let Some(entry) = journal.get(&problem.id, Part::Solution, sample)? else {
                return Ok(Sample::Unanswered);
            };
            let Some(text) = &entry.text else { return Ok(Sample::Failed(entry)) };
            let judged = self.judge(problem, text, entry.truncated)?;
            Ok(Sample::Judged(entry, judged))
        };
        (0..self.settings.samples).map(read).collect()
    }

    /// Those of the solutions that differ most.
    fn choose(&self, solutions: &[Solution], most: usize) -> Vec<usize> {
        let texts: Vec<&str> = solutions.iter().map(|one| one.mended.response.as_str()).collect();
        choose(&texts, most, self.settings.check.duplicate_bleu)
    }

    fn keep(&self, problem: &Problem, solutions: Vec<Solution>, out: &mut Output) -> Result<()> {
        let kept = self.choose(&solutions, self.settings.keep);
        for (i, solution) in solutions.into_iter().enumerate() {
            let id = row_id(problem, solution.sample);
            let Solution { sample, mended, entry } = solution;
            if !kept.contains(&i) {
                out.report.not_kept += 1;
                out.refuse(problem, id, "not_kept", Some(mended))?;
                continue;
            }
            let made = Made { id, samples: vec![sample], summary: None, teacher: entry.teacher.clone() };
            out.add(problem, made, mended, &[&entry])?;
        }
        Ok(())
    }

    fn assemble(
        &self,
        problem: &Problem,
        mut solutions: Vec<Solution>,
        journal: &mut Journal,
        out: &mut Output,
    ) -> Result<()> {
        let chosen = self.choose(&solutions, self.settings.paths);
        let id = problem.id.clone();
        if chosen.len() < self.settings.check.min_paths.max(1) {
            out.report.too_few_solutions.add(&id);
            return out.refuse(problem, id, "too_few_solutions", None);
        }
        retain(&mut solutions, &chosen);
        let summary = self.teachers_summary(problem, &solutions, journal)?;
        let written =
            summary.as_ref().map(|(text, _)| self.assembled(problem, &solutions, text)).transpose()?;
        let by_teacher = written.filter(|mended| names(mended).is_empty());
        let (mended, by) = match by_teacher {
            Some(mended) => (mended, "teacher"),
            None => (self.assembled(problem, &solutions, "")?, "template"),
        };
        if !names(&mended).is_empty() {
            out.report.assembled_rejected.add(&id);
            return out.refuse(problem, id, "assembled_rejected", Some(mended));
        }
        out.report.assembled += 1;
        out.report.summaries_by_teacher += usize::from(by == "teacher");
        let summary_entry = summary.as_ref().map(|(_, entry)| entry).filter(|_| by == "teacher");
        let entries: Vec<&Entry> = solutions.iter().map(|one| &one.entry).chain(summary_entry).collect();
        let made = Made {
            id,
            samples: solutions.iter().map(|one| one.sample).collect(),
            summary: Some(by),
            teacher: entries[0].teacher.clone(),
        };
        out.add(problem, made, mended, &entries)
    }

    /// The demonstration of these solutions, with a summary in the assembly's own words where none is given.
    fn assembled(&self, problem: &Problem, solutions: &[Solution], summary: &str) -> Result<Mended> {
        let paths: Vec<&str> = solutions.iter().map(|one| one.mended.response.as_str()).collect();
        let answer = extract(paths[0]).unwrap_or(&problem.answer);
        let values = Values { paths: &paths, answer, summary, ..Values::new(problem) };
        let response = self.settings.assembly.text(&values)?;
        Ok(mend(&Answer::new(problem, &response), &self.settings.check))
    }

    /// The teacher's summary of these solutions, if it was asked for them and wrote one without tags.
    fn teachers_summary(
        &self,
        problem: &Problem,
        solutions: &[Solution],
        journal: &mut Journal,
    ) -> Result<Option<(String, Entry)>> {
        let Some(template) = &self.settings.summary else { return Ok(None) };
        let asked = self.digest(&summary_messages(problem, solutions, template)?);
        if journal.has(&problem.id, Part::Summary, 0, asked) != Some(true) {
            return Ok(None);
        }
        let entry = journal.get(&problem.id, Part::Summary, 0)?.filter(|entry| !entry.truncated);
        let text = |entry: &Entry| Some(bare_summary(entry.text.as_deref()?));
        let summary = entry.and_then(|entry| Some((text(&entry)?, entry)));
        Ok(summary
            .filter(|(text, _)| !text.is_empty() && !Tag::ALL.iter().any(|tag| text.contains(tag.text()))))
    }

    /// What the teacher is asked for its summary, where there are solutions enough.
    pub(super) fn summary_messages(
        &self,
        problem: &Problem,
        template: &Template,
        journal: &mut Journal,
    ) -> Result<Option<Vec<Message>>> {
        let mut solutions = passed(self.samples(problem, journal)?);
        let chosen = self.choose(&solutions, self.settings.paths);
        if chosen.len() < self.settings.check.min_paths.max(1) {
            return Ok(None);
        }
        retain(&mut solutions, &chosen);
        summary_messages(problem, &solutions, template).map(Some)
    }
}

fn summary_messages(problem: &Problem, solutions: &[Solution], template: &Template) -> Result<Vec<Message>> {
    let paths: Vec<&str> = solutions.iter().map(|one| one.mended.response.as_str()).collect();
    template.messages(&Values { paths: &paths, ..Values::new(problem) })
}

/// The samples that passed the checks.
fn passed(samples: Vec<Sample>) -> Vec<Solution> {
    let solution = |(sample, one)| match one {
        Sample::Judged(entry, Judged { mended, refusals }) if refusals.is_empty() => {
            Some(Solution { sample, mended, entry })
        }
        _ => None,
    };
    samples.into_iter().enumerate().filter_map(solution).collect()
}

/// A summary without thinking and without the tags that some teachers put around it.
fn bare_summary(text: &str) -> String {
    let text = without_thinking(text);
    let inner =
        text.strip_prefix(Tag::Summary.text()).and_then(|rest| rest.strip_suffix(Tag::EndSummary.text()));
    inner.unwrap_or(&text).trim().to_owned()
}

fn retain(solutions: &mut Vec<Solution>, chosen: &[usize]) {
    let mut i = 0..;
    solutions.retain(|_| i.next().is_some_and(|i| chosen.contains(&i)));
}

fn row_id(problem: &Problem, sample: usize) -> String {
    format!("{}#{sample}", problem.id)
}

/// What a row says of its making.
struct Made {
    id: String,
    samples: Vec<usize>,
    summary: Option<&'static str>,
    teacher: String,
}

impl Output {
    /// Counts a sample, and writes it down where it won't become a row.
    fn count(&mut self, problem: &Problem, number: usize, sample: &Sample) -> Result<()> {
        let id = row_id(problem, number);
        let judged = match sample {
            Sample::Judged(_, judged) => judged,
            Sample::Unanswered => {
                self.report.unanswered += 1;
                return Ok(());
            }
            Sample::Failed(entry) => {
                self.report.failed.add(&id);
                let failed = entry.failed.clone();
                return self
                    .refused
                    .add(&Refused { failed, ..refused(problem, id, vec!["failed".into()], None) });
            }
        };
        for repair in &judged.mended.repairs {
            *self.report.repairs.entry(name(repair.kind)).or_default() += 1;
        }
        if judged.refusals.is_empty() {
            self.report.accepted += 1;
            return Ok(());
        }
        self.report.rejected += 1;
        for reason in &judged.refusals {
            self.report.reasons.entry(reason.clone()).or_default().add(&id);
        }
        self.refused.add(&refused(problem, id, judged.refusals.clone(), Some(judged.mended.clone())))
    }

    fn refuse(&mut self, problem: &Problem, id: String, reason: &str, mended: Option<Mended>) -> Result<()> {
        self.refused.add(&refused(problem, id, vec![reason.into()], mended))
    }

    fn add(&mut self, problem: &Problem, made: Made, mended: Mended, entries: &[&Entry]) -> Result<()> {
        let text = format!("{}\n{}", problem.problem, mended.response);
        if self.deduper.add(&Fingerprint::of(&text)).is_some() {
            self.report.duplicates.add(&made.id);
            return self.refuse(problem, made.id, "duplicate", Some(mended));
        }
        self.report.rows += 1;
        self.rows.add(&Row {
            id: made.id,
            problem: problem.problem.clone(),
            answer: problem.answer.clone(),
            source: problem.source.clone(),
            level: problem.level.clone(),
            response: mended.response,
            teacher: made.teacher,
            samples: made.samples,
            summary: made.summary,
            repairs: mended.repairs,
            tokens: entries.iter().map(|entry| entry.usage.completion_tokens).sum(),
            cost: entries.iter().map(|entry| entry.cost).sum(),
        })
    }
}

fn refused(problem: &Problem, id: String, reasons: Vec<String>, mended: Option<Mended>) -> Refused {
    let (response, faults) = match mended {
        Some(mended) => (Some(mended.response), mended.inspection.faults),
        None => (None, Vec::new()),
    };
    let Problem { problem, answer, .. } = problem.clone();
    Refused { id, problem, answer, reasons, faults, response, failed: None }
}

/// A file of JSON lines that takes its name only once it is whole.
struct Lines {
    path: PathBuf,
    part: PathBuf,
    file: BufWriter<File>,
}

impl Lines {
    fn create(path: &Path) -> Result<Self> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = File::create(&part).map_err(GenerateError::at(&part))?;
        Ok(Self { path: path.into(), part, file: BufWriter::new(file) })
    }

    fn add(&mut self, row: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(row).expect("rows have only texts and numbers");
        line.push(b'\n');
        self.file.write_all(&line).map_err(GenerateError::at(&self.part))
    }

    fn finish(mut self) -> Result<()> {
        let written = self.file.flush().and_then(|()| self.file.get_ref().sync_data());
        written.map_err(GenerateError::at(&self.part))?;
        std::fs::rename(&self.part, &self.path).map_err(GenerateError::at(&self.path))
    }
}
