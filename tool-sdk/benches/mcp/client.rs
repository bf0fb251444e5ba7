//! A peer that measures: calls one after the other, and with many on their way.

use std::fmt;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const ALONE: usize = 20_000;
const DEEP: usize = 300_000;
const IN_FLIGHT: usize = 64;

/// What one lane costs.
pub(crate) struct Figures {
    /// The median time of a call that goes alone, in microseconds.
    alone: f64,
    /// Calls in a second with many on their way.
    deep: f64,
    /// Processor time of the server for a call, alone and with many on their way.
    cpu: [f64; 2],
    /// From the start of the program to its list of tools, in milliseconds.
    start: f64,
    /// The most memory that the server had, in MiB.
    memory: f64,
}

impl Figures {
    pub(crate) fn best(self, other: Self) -> Self {
        Self {
            alone: self.alone.min(other.alone),
            deep: self.deep.max(other.deep),
            cpu: [self.cpu[0].min(other.cpu[0]), self.cpu[1].min(other.cpu[1])],
            start: self.start.min(other.start),
            memory: self.memory.min(other.memory),
        }
    }

    /// This as a multiple of `floor`.
    pub(crate) fn beside(&self, floor: &Self) -> String {
        format!(
            "alone {:.2}x, 64 deep {:.2}x, start {:.2}x",
            self.alone / floor.alone,
            self.deep / floor.deep,
            self.start / floor.start
        )
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { alone, deep, cpu, start, memory } = self;
        write!(
            f,
            "{alone:>10.2} {deep:>12.0} {:>10.2} {:>12.2} {start:>9.2} {memory:>9.1}",
            cpu[0], cpu[1]
        )
    }
}

pub(crate) fn measure(lane: &str) -> io::Result<Figures> {
    let mut starts: Vec<f64> = Vec::new();
    for _ in 0..15 {
        let begun = Instant::now();
        let peer = Peer::start(lane)?;
        starts.push(begun.elapsed().as_secs_f64() * 1e3);
        peer.end()?;
    }
    let mut peer = Peer::start(lane)?;
    peer.deep(DEEP / 10)?;
    let before = peer.cpu()?;
    let alone = peer.alone()?;
    let between = peer.cpu()?;
    let taken = peer.deep(DEEP)?;
    let after = peer.cpu()?;
    let memory = peer.memory()?;
    peer.end()?;
    Ok(Figures {
        alone,
        deep: DEEP as f64 / taken.as_secs_f64(),
        cpu: [(between - before) / ALONE as f64, (after - between) / DEEP as f64],
        start: median(starts),
        memory,
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

struct Peer {
    child: Child,
    write: ChildStdin,
    read: BufReader<ChildStdout>,
    id: usize,
}

impl Peer {
    /// Starts the server; it has told its tools by then.
    fn start(lane: &str) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(lane)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (write, read) = (child.stdin.take(), child.stdout.take());
        let (Some(write), Some(read)) = (write, read) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut peer = Self { child, write, read: BufReader::with_capacity(1 << 16, read), id: 9 };
        peer.ask(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#)?;
        peer.write
            .write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        peer.ask(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#)?;
        Ok(peer)
    }

    fn ask(&mut self, line: &str) -> io::Result<String> {
        writeln!(self.write, "{line}")?;
        let mut answer = String::new();
        self.read.read_line(&mut answer)?;
        if answer.contains("\"result\"") { Ok(answer) } else { Err(io::Error::other(answer)) }
    }

    fn call(&mut self) -> String {
        self.id += 1;
        let id = self.id;
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":\
             {{\"name\":\"add\",\"arguments\":{{\"a\":{id},\"b\":7}}}}}}\n"
        )
    }

    fn alone(&mut self) -> io::Result<f64> {
        let mut times = Vec::with_capacity(ALONE);
        let mut answer = Vec::new();
        for _ in 0..ALONE {
            let call = self.call();
            let begun = Instant::now();
            self.write.write_all(call.as_bytes())?;
            answer.clear();
            self.read.read_until(b'\n', &mut answer)?;
            times.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        Ok(median(times))
    }

    fn deep(&mut self, calls: usize) -> io::Result<Duration> {
        let begun = Instant::now();
        let (mut sent, mut answered) = (0, 0);
        let mut lines = String::new();
        while answered < calls {
            lines.clear();
            while sent < calls && sent - answered < IN_FLIGHT {
                lines += &self.call();
                sent += 1;
            }
            self.write.write_all(lines.as_bytes())?;
            let heard = self.read.fill_buf()?;
            if heard.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let (length, count) = (heard.len(), memchr::memchr_iter(b'\n', heard).count());
            self.read.consume(length);
            answered += count;
        }
        Ok(begun.elapsed())
    }

    /// Processor time of the server until now, in microseconds.
    fn cpu(&self) -> io::Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/schedstat", self.child.id()))?;
        let nanoseconds: f64 =
            stat.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default();
        Ok(nanoseconds / 1e3)
    }

    fn memory(&self) -> io::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<f64>().ok());
        Ok(kib.unwrap_or_default() / 1024.0)
    }

    fn end(mut self) -> io::Result<()> {
        drop(self.write);
        self.read.read_to_end(&mut Vec::new())?;
        self.child.wait().map(drop)
    }
}
