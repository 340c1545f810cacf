//! A response with parallel paths, shown as it is sampled.
//!
//! The engine's tokens come from all live paths at once. [`Live`] puts them in text order: the trunk is passed on as it
//! comes, a path once it has ended and its elder siblings are shown. [`Printer`] writes tokens in text order: to a
//! terminal it draws the paths,
//!
//! ```text
//! ╭ 3 paths
//! │1 7*3=21,21+12=33 no
//! │2 12+3=15,15*3=45 ok
//! │3 12-7=5,5*3=15 no
//! ╰ 12+3=15,15*3=45 ok
//! Answer: 12+3=15,15*3=45
//! ```
//!
//! elsewhere it writes the text with its tags, untouched.

use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Color, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parallel_r1::engine::{ForkEvent, JoinEvent, Observer, TokenEvent};
use parallel_r1::prompt::tokenizer::DecodeStream;
use parallel_r1::prompt::{Control, Controls, Tag, Tokenizer};

use crate::progress::on_terminal;

/// Colours of the paths, in turn.
const PALETTE: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Yellow,
    AnsiColor::Magenta,
    AnsiColor::Green,
    AnsiColor::Blue,
    AnsiColor::Red,
];
const FRAME: Style = Style::new().bold();

/// Writes the tokens of a response in text order.
pub(crate) struct Printer<'a, W> {
    out: W,
    /// Draw the paths, rather than write the tags.
    drawn: bool,
    controls: &'a Controls,
    stream: DecodeStream<'a>,
    /// The path at work in each open block, from 1; 0 before the first.
    blocks: Vec<usize>,
    in_summary: bool,
    at_line_start: bool,
    /// A tag has just ended the line, so a newline after it would be one too many.
    after_tag: bool,
}

impl<'a, W: Write> Printer<'a, W> {
    /// Writes to `out`.
    pub(crate) fn new(out: W, drawn: bool, tokenizer: &'a Tokenizer, controls: &'a Controls) -> Self {
        Self {
            out,
            drawn,
            controls,
            stream: tokenizer.decode_stream(),
            blocks: vec![],
            in_summary: false,
            at_line_start: true,
            after_tag: false,
        }
    }

    /// Writes a token.
    pub(crate) fn token(&mut self, token: u32) -> anyhow::Result<()> {
        match self.controls.which(token) {
            Some(Control::Tag(tag)) if self.drawn => {
                self.flush_text()?;
                self.tag(tag)?;
            }
            _ => {
                let text = self.stream.push(token)?;
                self.text(&text)?;
            }
        }
        Ok(())
    }

    /// Shows everything written so far.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Ends the response, and its line.
    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        self.flush_text()?;
        self.blocks.clear();
        self.in_summary = false;
        self.end_line()?;
        Ok(self.flush()?)
    }

    fn flush_text(&mut self) -> anyhow::Result<()> {
        let rest = self.stream.flush()?;
        Ok(self.text(&rest)?)
    }

    fn tag(&mut self, tag: Tag) -> io::Result<()> {
        self.end_line()?;
        self.after_tag = true;
        match tag {
            Tag::Parallel => {
                self.bars()?;
                writeln!(self.out, "{FRAME}╭{FRAME:#}")?;
                self.blocks.push(0);
            }
            Tag::Path => self.blocks.iter_mut().last().into_iter().for_each(|path| *path += 1),
            Tag::EndParallel => drop(self.blocks.pop()),
            Tag::Summary => self.in_summary = true,
            Tag::EndSummary => self.in_summary = false,
            Tag::EndPath => {}
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        for line in text.split_inclusive('\n') {
            if std::mem::take(&mut self.after_tag) && line == "\n" {
                continue;
            }
            if self.drawn && self.at_line_start {
                self.bars()?;
            }
            self.out.write_all(line.as_bytes())?;
            self.at_line_start = line.ends_with('\n');
        }
        Ok(())
    }

    fn bars(&mut self) -> io::Result<()> {
        for &path in &self.blocks {
            let colour = PALETTE[path.saturating_sub(1) % PALETTE.len()];
            let style = Style::new().fg_color(Some(Color::Ansi(colour)));
            write!(self.out, "{style}│{path}{style:#} ")?;
        }
        if self.in_summary {
            write!(self.out, "{FRAME}╰{FRAME:#} ")?;
        }
        Ok(())
    }

    fn end_line(&mut self) -> io::Result<()> {
        if !self.at_line_start {
            self.at_line_start = true;
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }
}

/// Watches one response.
pub(crate) struct Live<'a, W> {
    printer: Printer<'a, W>,
    block: Option<Block>,
    failure: Option<anyhow::Error>,
}

/// The open block of a response whose paths run at the same time.
struct Block {
    paths: Vec<Vec<u32>>,
    ended: Vec<bool>,
    shown: usize,
    status: ProgressBar,
}

impl<'a, W: Write> Live<'a, W> {
    /// Shows the response with a printer.
    pub(crate) fn new(printer: Printer<'a, W>) -> Self {
        Self { printer, block: None, failure: None }
    }

    /// The end; says what went wrong in between.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.printer.finish(),
        }
    }

    fn take(&mut self, event: &TokenEvent) -> anyhow::Result<()> {
        match (&mut self.block, event.path) {
            (Some(block), Some(path)) => {
                block.paths[path].push(event.token);
                block.ended[path] =
                    self.printer.controls.which(event.token) == Some(Control::Tag(Tag::EndPath));
                block.show(&mut self.printer)
            }
            _ => {
                self.printer.token(event.token)?;
                Ok(self.printer.flush()?)
            }
        }
    }
}

impl Block {
    fn new(paths: usize) -> Self {
        let target = if on_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let status = ProgressBar::with_draw_target(None, target);
        status
            .set_style(ProgressStyle::with_template("{spinner} {wide_msg}").expect("the template is valid"));
        status.enable_steady_tick(Duration::from_millis(100));
        Self { paths: vec![vec![]; paths], ended: vec![false; paths], shown: 0, status }
    }

    /// Prints the paths whose turn it is, and says how far the others are.
    fn show<W: Write>(&mut self, printer: &mut Printer<'_, W>) -> anyhow::Result<()> {
        while self.shown < self.paths.len() && self.ended[self.shown] {
            let path = &self.paths[self.shown];
            self.status.suspend(|| {
                path.iter().try_for_each(|&token| printer.token(token))?;
                printer.flush().map_err(anyhow::Error::from)
            })?;
            self.shown += 1;
        }
        let lengths: Vec<String> = self.paths.iter().map(|path| path.len().to_string()).collect();
        self.status.set_message(format!("{} paths: {} tokens", lengths.len(), lengths.join(" ")));
        Ok(())
    }
}

impl<W: Write> Observer for Live<'_, W> {
    fn token(&mut self, event: &TokenEvent) {
        if self.failure.is_none() {
            self.failure = self.take(event).err();
        }
    }

    fn fork(&mut self, event: &ForkEvent<'_>) {
        self.block = Some(Block::new(event.paths.len()));
    }

    fn join(&mut self, _: &JoinEvent<'_>) {
        if let Some(block) = self.block.take() {
            block.status.finish_and_clear();
        }
    }

    fn cancelled(&mut self) -> bool {
        self.failure.is_some()
    }
}

#[cfg(test)]
mod tests {
    use parallel_r1::layout::Role;

    use super::*;

    const TEXT: &str = "So:\n<Parallel><Path>1+1=2 no\n2+2=4 ok\n</Path><Path>3 no</Path></Parallel>\n<Summary>2+2=4 ok</Summary>\n\nAnswer: 4";

    fn tokenizer() -> Tokenizer {
        let mut tokenizer = Tokenizer::characters();
        tokenizer.add_tags().unwrap();
        tokenizer
    }

    fn printed(drawn: bool) -> String {
        let tokenizer = tokenizer();
        let controls = tokenizer.controls().unwrap();
        let mut out = anstream::StripStream::new(Vec::new());
        let mut printer = Printer::new(&mut out, drawn, &tokenizer, &controls);
        for token in tokenizer.encode_response(TEXT).unwrap() {
            printer.token(token).unwrap();
        }
        printer.finish().unwrap();
        String::from_utf8(out.into_inner()).unwrap()
    }

    #[test]
    fn a_pipe_gets_the_text_as_it_is() {
        assert_eq!(printed(false), format!("{TEXT}\n"));
    }

    #[test]
    fn a_terminal_shows_the_paths() {
        let drawn = "So:\n╭\n│1 1+1=2 no\n│1 2+2=4 ok\n│2 3 no\n╰ 2+2=4 ok\n\nAnswer: 4\n";
        assert_eq!(printed(true), drawn);
    }

    /// The paths' tokens come in turns, and the second path ends first.
    #[test]
    fn live_paths_are_shown_in_text_order() {
        let tokenizer = tokenizer();
        let controls = tokenizer.controls().unwrap();
        let mut out = Vec::new();
        let mut live = Live::new(Printer::new(&mut out, false, &tokenizer, &controls));
        let say = |live: &mut Live<'_, &mut Vec<u8>>, path: Option<usize>, text: &str| {
            let (role, logprob) = (if path.is_some() { Role::Path } else { Role::Trunk }, 0.0);
            let token = tokenizer.id(text).unwrap();
            let (request, sample, segment, forced) = (0, 0, 0, false);
            live.token(&TokenEvent { request, sample, segment, role, path, token, forced, logprob });
        };
        say(&mut live, None, "<Parallel>");
        live.fork(&ForkEvent { request: 0, sample: 0, from: 1, paths: &[2, 3] });
        for (path, text) in [(0, "<Path>"), (1, "<Path>"), (0, "a"), (1, "b"), (1, "</Path>"), (0, "c")] {
            say(&mut live, Some(path), text);
        }
        say(&mut live, Some(0), "</Path>");
        live.join(&JoinEvent { request: 0, sample: 0, paths: &[2, 3], into: 4 });
        say(&mut live, None, "</Parallel>");
        live.finish().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "<Parallel><Path>ac</Path><Path>b</Path></Parallel>\n");
    }
}
