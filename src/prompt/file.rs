//! Files that somebody else put into a model's folder: a pipe would wait for ever, a device would fill the
//! memory.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Reads a regular file of at most `limit` bytes; other kinds and longer files are an error.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    // Asked before opening, for opening a pipe waits already.
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "expected a regular file, got a folder, pipe or device",
        ));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let reason = format!("expected at most {limit} bytes, got more");
        return Err(Error::new(ErrorKind::InvalidData, reason));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read(&path, 4).unwrap(), b"four");
        assert_eq!(read(&path, 3).unwrap_err().to_string(), "expected at most 3 bytes, got more");
        let error = read(dir.path(), 4).unwrap_err().to_string();
        assert_eq!(error, "expected a regular file, got a folder, pipe or device");
        #[cfg(unix)]
        {
            let device = dir.path().join("device");
            std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
            assert!(read(&device, 4).unwrap_err().to_string().contains("expected a regular file"));
        }
    }
}
