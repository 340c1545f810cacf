//! A file of lines that another process, or another thread, is still writing.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A longer line is no record of a run.
const LONGEST: u64 = 16 << 20;
/// So many bytes before the place are compared, to see whether the file has been written anew.
const MARK: usize = 64;

/// The place in a file up to which its lines have been read.
pub(super) struct Tail {
    path: PathBuf,
    place: u64,
    /// The bytes before the place.
    mark: Vec<u8>,
}

/// What has become of the file since the last look.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It has only grown, if anything.
    Grown,
    /// It has been written anew: all its lines come once more, and the earlier ones don't count any more.
    Anew,
}

impl Tail {
    /// The start of a file, which need not be there yet.
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.into(), place: 0, mark: vec![] }
    }

    /// Whether the lines that have been read are still those of the file.
    pub(super) fn look(&mut self) -> anyhow::Result<Change> {
        let context = || format!("{}: cannot be read", self.path.display());
        let same = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => self.place == 0,
            file => {
                let mut file = file.with_context(context)?;
                let mut bytes = vec![0; self.mark.len()];
                file.seek(SeekFrom::Start(self.place - bytes.len() as u64)).with_context(context)?;
                file.read_exact(&mut bytes).is_ok() && bytes == self.mark
            }
        };
        if same {
            return Ok(Change::Grown);
        }
        (self.place, self.mark) = (0, vec![]);
        Ok(Change::Anew)
    }

    /// Shows the lines that have come since; the last one only once it is complete.
    pub(super) fn read(&mut self, mut see: impl FnMut(&str)) -> anyhow::Result<()> {
        let name = self.path.display().to_string();
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            file => file.with_context(|| format!("{name}: cannot be read"))?,
        };
        file.seek(SeekFrom::Start(self.place)).with_context(|| format!("{name}: cannot be read"))?;
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.by_ref().take(LONGEST).read_until(b'\n', &mut line);
            let read = read.with_context(|| format!("{name}: cannot be read"))? as u64;
            if line.last() != Some(&b'\n') {
                anyhow::ensure!(
                    read < LONGEST,
                    "{name}: expected lines of at most {LONGEST} bytes, got a longer one"
                );
                return Ok(());
            }
            self.place += read;
            self.mark.extend_from_slice(&line);
            self.mark.drain(..self.mark.len().saturating_sub(MARK));
            see(String::from_utf8_lossy(&line).trim_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_come_once_complete_and_once_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let mut tail = Tail::new(&path);
        let next = |tail: &mut Tail| {
            let mut lines = Vec::new();
            let change = tail.look().unwrap();
            tail.read(|line| lines.push(line.to_owned())).unwrap();
            (change, lines.join(","))
        };
        assert_eq!(next(&mut tail), (Change::Grown, String::new()));
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one\ntwo\nthr").unwrap();
        assert_eq!(next(&mut tail), (Change::Grown, "one,two".into()));
        file.write_all(b"ee\n").unwrap();
        assert_eq!(next(&mut tail), (Change::Grown, "three".into()));
        assert_eq!(next(&mut tail), (Change::Grown, String::new()));
        // Written anew, shorter and longer than what has been read.
        std::fs::write(&path, "four\n").unwrap();
        assert_eq!(next(&mut tail), (Change::Anew, "four".into()));
        std::fs::write(&path, "five and more\nsix\n").unwrap();
        assert_eq!(next(&mut tail), (Change::Anew, "five and more,six".into()));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(next(&mut tail), (Change::Anew, String::new()));
    }
}
