//! Everything that a teacher was asked and answered, one line each, written before anything is made of it. An answer that
//! stands here is never asked for again, and the data set is derived from here alone.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ring::digest::{SHA256, digest as sha};
use serde::{Deserialize, Serialize};

use super::{GenerateError, Result};
use crate::cold_start::budget::{Spent, Usage};

/// Lines are safe from a crash of the process at once, and from one of the machine after this.
const UNSYNCED: Duration = Duration::from_secs(1);

/// What an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A solution, perhaps in parallel.
    Solution,
    /// A summary of the chosen solutions.
    Summary,
}

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The problem's id.
    pub problem: String,
    /// What the answer is for.
    pub part: Part,
    /// Which sample.
    pub sample: usize,
    /// A digest of all that was asked: teacher, settings, prompt.
    pub asked: String,
    /// Who answered.
    pub teacher: String,
    /// The answer as it came, or null where all tries failed.
    pub text: Option<String>,
    /// Why they failed.
    pub failed: Option<String>,
    /// Whether the answer ends at the teacher's limit.
    pub truncated: bool,
    /// The answer's tokens.
    pub usage: Usage,
    /// What they cost.
    pub cost: f64,
    /// What all tries together took.
    pub spent: Spent,
}

/// 64 bits of SHA-256.
pub(crate) fn digest(text: &str) -> u64 {
    let bytes = sha(&SHA256, text.as_bytes());
    u64::from_be_bytes(bytes.as_ref()[..8].try_into().expect("SHA-256 has 32 bytes"))
}

type Key = (u64, Part, usize);

/// The file with an index of it: 50 bytes of memory an answer.
pub struct Journal {
    path: PathBuf,
    file: File,
    end: u64,
    reader: BufReader<File>,
    places: HashMap<Key, Place>,
    spent: Spent,
    synced: Instant,
}

#[derive(Clone, Copy)]
struct Place {
    offset: u64,
    asked: u64,
    answered: bool,
}

impl Journal {
    /// Opens or begins a journal. A last line that was cut off while it was written is dropped.
    pub fn open(path: &Path) -> Result<Self> {
        let at = || GenerateError::at(path);
        let open = File::options().create(true).append(true).read(true).open(path);
        let file = open.map_err(at())?;
        let reader = BufReader::new(File::open(path).map_err(at())?);
        let (places, spent, synced) = (HashMap::new(), Spent::default(), Instant::now());
        let mut journal = Self { path: path.into(), file, end: 0, reader, places, spent, synced };
        journal.read()?;
        Ok(journal)
    }

    fn read(&mut self) -> Result<()> {
        let (mut line, mut number) = (Vec::new(), 0);
        let mut torn = None;
        loop {
            line.clear();
            let read = self.reader.read_until(b'\n', &mut line);
            let read = read.map_err(GenerateError::at(&self.path))? as u64;
            if read == 0 {
                break;
            }
            // Whatever follows it, a torn line was not the last one.
            if let Some(error) = torn {
                return Err(error);
            }
            number += 1;
            match serde_json::from_slice::<Entry>(&line) {
                Ok(entry) if line.ends_with(b"\n") => {
                    self.index(&entry, self.end);
                    self.end += read;
                }
                Ok(_) => torn = Some(self.wrong(number, "a line without its end".into())),
                Err(error) => torn = Some(self.wrong(number, error.to_string())),
            }
        }
        self.file.set_len(self.end).map_err(GenerateError::at(&self.path))
    }

    fn wrong(&self, line: usize, reason: String) -> GenerateError {
        GenerateError::Journal { path: self.path.clone(), line, reason }
    }

    fn index(&mut self, entry: &Entry, offset: u64) {
        self.spent += entry.spent;
        let asked = u64::from_str_radix(&entry.asked, 16).unwrap_or_default();
        let place = Place { offset, asked, answered: entry.text.is_some() };
        self.places.insert((digest(&entry.problem), entry.part, entry.sample), place);
    }

    /// Adds an entry; from now on it stands for its question.
    pub fn append(&mut self, entry: &Entry) -> Result<()> {
        let mut line = serde_json::to_vec(entry).expect("an entry has only texts and numbers");
        line.push(b'\n');
        self.file.write_all(&line).map_err(GenerateError::at(&self.path))?;
        self.index(entry, self.end);
        self.end += line.len() as u64;
        if self.synced.elapsed() > UNSYNCED { self.sync() } else { Ok(()) }
    }

    /// Makes what was written safe.
    pub fn sync(&mut self) -> Result<()> {
        self.synced = Instant::now();
        self.file.sync_data().map_err(GenerateError::at(&self.path))
    }

    /// Whether a question has its answer. `None` where the answer that is there is to another question.
    pub fn has(&self, problem: &str, part: Part, sample: usize, asked: u64) -> Option<bool> {
        match self.places.get(&(digest(problem), part, sample)) {
            None => Some(false),
            Some(place) if !place.answered => Some(false),
            Some(place) => (place.asked == asked).then_some(true),
        }
    }

    /// What the journal says of a question.
    pub fn get(&mut self, problem: &str, part: Part, sample: usize) -> Result<Option<Entry>> {
        let Some(place) = self.places.get(&(digest(problem), part, sample)) else { return Ok(None) };
        let mut line = Vec::new();
        let sought = self.reader.seek(SeekFrom::Start(place.offset));
        sought
            .and_then(|_| self.reader.read_until(b'\n', &mut line))
            .map_err(GenerateError::at(&self.path))?;
        let entry = serde_json::from_slice(&line).map_err(|error| self.wrong(0, error.to_string()))?;
        Ok(Some(entry))
    }

    /// What all entries together took.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(problem: &str, sample: usize, text: Option<&str>) -> Entry {
        let spent = Spent { requests: 2, prompt_tokens: 3, completion_tokens: 4, cost: 0.5 };
        Entry {
            problem: problem.into(),
            part: Part::Solution,
            sample,
            asked: format!("{:016x}", 7),
            teacher: "t".into(),
            text: text.map(str::to_owned),
            failed: text.is_none().then(|| "busy".to_owned()),
            truncated: false,
            usage: Usage::default(),
            cost: 0.0,
            spent,
        }
    }

    #[test]
    fn what_was_written_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        journal.append(&entry("a", 0, Some("eins\n\n☃"))).unwrap();
        journal.append(&entry("a", 1, None)).unwrap();
        for mut journal in [Journal::open(&path).unwrap(), journal] {
            assert_eq!(journal.get("a", Part::Solution, 0).unwrap(), Some(entry("a", 0, Some("eins\n\n☃"))));
            assert_eq!(journal.get("b", Part::Solution, 0).unwrap(), None);
            let has = |part, sample, asked| journal.has("a", part, sample, asked);
            assert_eq!(has(Part::Solution, 0, 7), Some(true));
            assert_eq!(has(Part::Solution, 0, 8), None, "another question");
            assert_eq!(has(Part::Solution, 1, 7), Some(false), "failures are tried again");
            assert_eq!(has(Part::Summary, 0, 7), Some(false));
            assert_eq!((journal.spent().requests, journal.spent().cost), (4, 1.0));
        }
    }

    #[test]
    fn the_latest_entry_counts_and_all_of_them_cost() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&folder.path().join("j")).unwrap();
        journal.append(&entry("a", 0, None)).unwrap();
        journal.append(&entry("a", 0, Some("zwei"))).unwrap();
        assert_eq!(journal.get("a", Part::Solution, 0).unwrap().unwrap().text.as_deref(), Some("zwei"));
        assert_eq!(journal.spent().requests, 4);
    }

    #[test]
    fn a_torn_last_line_is_dropped_and_a_torn_middle_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let whole = serde_json::to_string(&entry("a", 0, Some("x"))).unwrap();
        for cut in [1, whole.len() / 2, whole.len()] {
            std::fs::write(&path, format!("{whole}\n{}", &whole[..cut])).unwrap();
            let mut journal = Journal::open(&path).unwrap();
            journal.append(&entry("b", 0, Some("y"))).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text.lines().count(), 2, "{text}");
            assert_eq!(Journal::open(&path).unwrap().spent().requests, 4);
        }
        std::fs::write(&path, format!("{whole}\n{}\n{whole}\n", &whole[..9])).unwrap();
        let error = Journal::open(&path).err().unwrap().to_string();
        assert!(error.contains("journal.jsonl, line 2: expected a journal entry"), "{error}");
    }
}
