//! A peer at the other end of two pipes that measures: calls one after the other, and with many
//! on their way.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::figures::{Costs, Figures, median};
use crate::server_process::{own, processor_time};

const ALONE: usize = 20_000;
const DEEP: usize = 300_000;
const IN_FLIGHT: usize = 64;
const LISTS: usize = 200;
const STARTS: usize = 15;

pub(crate) fn measure(lane: &str) -> io::Result<Figures> {
    let start = start(|| own(lane))?.start;
    let mut peer = Peer::start(own(lane)?)?;
    peer.deep(DEEP / 10)?;
    let before = peer.cpu()?;
    let mut alone = peer.alone()?;
    let between = peer.cpu()?;
    let taken = peer.deep(DEEP)?;
    let after = peer.cpu()?;
    peer.end()?;
    Ok(Figures {
        alone: median(&mut alone),
        slow: alone[ALONE * 99 / 100],
        deep: DEEP as f64 / taken.as_secs_f64(),
        cpu: [(between - before) / ALONE as f64, (after - between) / DEEP as f64],
        start,
    })
}

/// How long a whole list of tools takes, in microseconds, and how many tools it has.
pub(crate) fn list(lane: &str) -> io::Result<(f64, usize)> {
    let mut peer = Peer::start(own(lane)?)?;
    let mut times = Vec::with_capacity(LISTS);
    let mut tools = 0;
    for _ in 0..LISTS {
        let begun = Instant::now();
        tools = peer.list()?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    peer.end()?;
    Ok((median(&mut times), tools))
}

/// What a program costs that is started and says which tools it has.
pub(crate) fn start(mut program: impl FnMut() -> io::Result<Command>) -> io::Result<Costs> {
    let mut times = Vec::with_capacity(STARTS);
    let mut memory = f64::MAX;
    for _ in 0..STARTS {
        let begun = Instant::now();
        let peer = Peer::start(program()?)?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        memory = memory.min(peer.memory()?);
        peer.end()?;
    }
    Ok(Costs { start: median(&mut times), memory })
}

struct Peer {
    child: Child,
    write: ChildStdin,
    read: BufReader<ChildStdout>,
    id: usize,
}

impl Peer {
    /// Starts the server; it has told its tools by then.
    fn start(mut program: Command) -> io::Result<Self> {
        let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
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

    /// Lists all tools, page by page; says how many there are.
    fn list(&mut self) -> io::Result<usize> {
        let mut tools = 0;
        let mut params = String::new();
        loop {
            let page = self.ask(&format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"{params}}}"
            ))?;
            tools += page.matches("\"inputSchema\"").count();
            let Some((_, rest)) = page.split_once("\"nextCursor\":\"") else { return Ok(tools) };
            let cursor = rest.split('"').next().unwrap_or_default();
            params = format!(",\"params\":{{\"cursor\":\"{cursor}\"}}");
        }
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

    fn alone(&mut self) -> io::Result<Vec<f64>> {
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
        Ok(times)
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

    fn cpu(&self) -> io::Result<f64> {
        processor_time(&self.child)
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
