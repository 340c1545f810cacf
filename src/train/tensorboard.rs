//! Step metrics as TensorBoard events, one folder an arm, the stages one after another.
//!
//! The format is TensorFlow's record file (length, masked CRC-32C of the length, data, masked CRC-32C of the data) of
//! `Event` messages in protocol-buffer form; only three of its fields are needed, so they are written by hand.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::metrics::{Sink, StageId, StepMetrics};
use super::{Result, TrainError};

/// Writes `FOLDER/ARM/events.out.tfevents.*`.
pub struct TensorBoard {
    folder: PathBuf,
    file: Option<(PathBuf, File)>,
    arm: String,
    /// Steps of the arm's earlier stages.
    before: usize,
}

impl TensorBoard {
    /// A sink that writes below `folder`.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.into(), file: None, arm: String::new(), before: 0 }
    }

    fn open(&mut self, arm: &str) -> Result<()> {
        let folder = self.folder.join(arm);
        let now = seconds_since_1970();
        let path = folder.join(format!("events.out.tfevents.{:010}.{}", now as u64, std::process::id()));
        let made = std::fs::create_dir_all(&folder)
            .and_then(|()| File::options().create(true).append(true).open(&path));
        let file = made.map_err(|source| TrainError::File { path: path.clone(), source })?;
        self.file = Some((path, file));
        self.arm = arm.into();
        self.write(&version_event(now))
    }

    fn write(&mut self, event: &[u8]) -> Result<()> {
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        file.write_all(&record(event)).map_err(|source| TrainError::File { path: path.clone(), source })
    }
}

impl Sink for TensorBoard {
    fn begin(&mut self, stage: &StageId, _first: usize) -> Result<()> {
        if self.file.is_none() || self.arm != stage.arm {
            self.open(&stage.arm)?;
        }
        self.before = stage.steps_before;
        Ok(())
    }

    fn step(&mut self, metrics: &StepMetrics) -> Result<()> {
        let step = (self.before + metrics.step) as u64;
        self.write(&scalars_event(seconds_since_1970(), step, metrics.values()))
    }
}

fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

/// Frames one message.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let parts: [&[u8]; 4] =
        [&length, &masked_crc(&length).to_le_bytes(), data, &masked_crc(data).to_le_bytes()];
    parts.concat()
}

fn masked_crc(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// `Event { wall_time = 1, file_version = 3 }`, which opens a file.
fn version_event(wall_time: f64) -> Vec<u8> {
    let mut event = double(1, wall_time);
    event.extend(bytes(3, b"brain.Event:2"));
    event
}

/// `Event { wall_time = 1, step = 2, summary = 5 { value = 1 { tag = 1, simple_value = 2 } ... } }`.
fn scalars_event(wall_time: f64, step: u64, values: &[(&'static str, f64)]) -> Vec<u8> {
    let mut summary = Vec::new();
    for (tag, number) in values {
        let mut value = bytes(1, tag.as_bytes());
        value.push(2 << 3 | 5);
        value.extend((*number as f32).to_le_bytes());
        summary.extend(bytes(1, &value));
    }
    let mut event = double(1, wall_time);
    event.push(2 << 3);
    event.extend(varint(step));
    event.extend(bytes(5, &summary));
    event
}

fn double(field: u8, value: f64) -> Vec<u8> {
    let mut out = vec![field << 3 | 1];
    out.extend(value.to_le_bytes());
    out
}

fn bytes(field: u8, data: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    out.extend(varint(data.len() as u64));
    out.extend(data);
    out
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_published_form() {
        // The first record of every event file, as TensorFlow writes it but for the time.
        let record = record(&version_event(0.0));
        assert_eq!(record[..8], [24, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(record[8..12], [0xa3, 0x7f, 0x4b, 0x22]);
        assert_eq!(record[12..36], *b"\x09\0\0\0\0\0\0\0\0\x1a\x0dbrain.Event:2");
        assert_eq!(record.len(), 8 + 4 + 24 + 4);
    }

    #[test]
    fn a_scalar_event_by_hand() {
        let event = scalars_event(0.0, 300, &[("loss", 0.5)]);
        let want = [
            &b"\x09\0\0\0\0\0\0\0\0"[..],  // wall_time
            b"\x10\xac\x02",               // step = 300
            b"\x2a\x0d\x0a\x0b",           // summary, value
            b"\x0a\x04loss\x15\0\0\0\x3f", // tag, simple_value
        ];
        assert_eq!(event, want.concat());
    }
}
