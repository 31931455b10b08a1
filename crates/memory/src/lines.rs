//! The lines of large files, one by one.

use std::io::{BufRead, BufReader, Read};
use std::ops::ControlFlow;

/// The lines of a file, each with its number from 1; longer ones than `most` bytes are told as `None`.
///
/// # Errors
/// What the reader says.
pub fn lines(
    reader: impl Read,
    most: usize,
    mut take: impl FnMut(usize, Option<&[u8]>) -> ControlFlow<()>,
) -> std::io::Result<()> {
    whole_lines(reader, most, |number, line| {
        let text = line.map(|line| line.strip_suffix(b"\n").unwrap_or(line));
        take(number, text.map(|text| text.strip_suffix(b"\r").unwrap_or(text)))
    })
}

/// The same, each with its line feed, as it stands in the file.
///
/// # Errors
/// What the reader says.
pub fn whole_lines(
    reader: impl Read,
    most: usize,
    mut take: impl FnMut(usize, Option<&[u8]>) -> ControlFlow<()>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let (read, whole) = read_line(&mut reader, &mut line, most)?;
        if read == 0 {
            break;
        }
        if take(number, whole.then_some(line.as_slice())).is_break() {
            break;
        }
    }
    Ok(())
}

/// Reads up to a line feed, keeping `most` bytes; how many were read, and whether all were kept.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>, most: usize) -> std::io::Result<(usize, bool)> {
    let mut read = 0;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok((read, read <= most));
        }
        let end = buffer.iter().position(|byte| *byte == b'\n').map_or(buffer.len(), |at| at + 1);
        let done = buffer[end - 1] == b'\n';
        let keep = end.min(most.saturating_sub(line.len()));
        line.extend_from_slice(&buffer[..keep]);
        read += end;
        reader.consume(end);
        if done {
            return Ok((read, read <= most));
        }
    }
}
