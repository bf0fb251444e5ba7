//! A peer that measures over HTTP: calls one after the other on one connection, and 64 at a
//! time, each on a connection of its own.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Instant;

use crate::figures::{Figures, median};
use crate::server_process::{own, processor_time};

/// Who has it may enter.
pub(crate) const TOKEN: &str = "bench-0123456789abcdef0123456789abcdef";
const ALONE: usize = 10_000;
const DEEP: usize = 60_000;
const IN_FLIGHT: usize = 64;

pub(crate) fn measure(lane: &str) -> io::Result<Figures> {
    let begun = Instant::now();
    let mut child = own(lane)?.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let measured = calls(&mut child, begun);
    child.kill()?;
    child.wait()?;
    measured
}

fn calls(server: &mut Child, begun: Instant) -> io::Result<Figures> {
    let mut address = String::new();
    let said = server.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    BufReader::new(said).read_line(&mut address)?;
    let address = address.trim().to_owned();
    let mut first = Line::open(&address, String::new())?;
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
    let session = first.ask(hello)?;
    first.session = session;
    first.ask(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
    first.ask(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#)?;
    let start = begun.elapsed().as_secs_f64() * 1e3;

    let mut lines = vec![first];
    while lines.len() < IN_FLIGHT {
        lines.push(Line::open(&address, lines[0].session.clone())?);
    }
    let mut id = 9;
    rounds(&mut lines, DEEP / 10, &mut id)?;
    let before = processor_time(server)?;
    let mut times = Vec::with_capacity(ALONE);
    for _ in 0..ALONE {
        let call = call(&mut id);
        let begun = Instant::now();
        lines[0].ask(&call)?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    let between = processor_time(server)?;
    let deep = Instant::now();
    rounds(&mut lines, DEEP, &mut id)?;
    let taken = deep.elapsed();
    let after = processor_time(server)?;
    Ok(Figures {
        alone: median(&mut times),
        slow: times[ALONE * 99 / 100],
        deep: DEEP as f64 / taken.as_secs_f64(),
        cpu: [(between - before) / ALONE as f64, (after - between) / DEEP as f64],
        start,
    })
}

/// Calls, as many at a time as there are connections.
fn rounds(lines: &mut [Line], calls: usize, id: &mut usize) -> io::Result<()> {
    for _ in 0..calls / lines.len() {
        for line in &mut *lines {
            line.send(&call(id))?;
        }
        for line in &mut *lines {
            line.hear()?;
        }
    }
    Ok(())
}

fn call(id: &mut usize) -> String {
    *id += 1;
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":\
         {{\"name\":\"add\",\"arguments\":{{\"a\":{id},\"b\":7}}}}}}"
    )
}

/// One connection.
struct Line {
    stream: BufReader<TcpStream>,
    address: String,
    /// The line of a head that names the session.
    session: String,
}

impl Line {
    fn open(address: &str, session: String) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), address: address.to_owned(), session })
    }

    /// Gives the line that names the session, where the answer has one.
    fn ask(&mut self, message: &str) -> io::Result<String> {
        self.send(message)?;
        self.hear()
    }

    fn send(&mut self, message: &str) -> io::Result<()> {
        let Self { address, session, .. } = self;
        let length = message.len();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             {session}Content-Length: {length}\r\n\r\n{message}"
        );
        self.stream.get_mut().write_all(request.as_bytes())
    }

    /// Reads one answer, which has a length or comes in parts.
    fn hear(&mut self) -> io::Result<String> {
        let (mut length, mut session, mut line) = (None, String::new(), String::new());
        self.stream.read_line(&mut line)?;
        if !line.starts_with("HTTP/1.1 20") {
            return Err(io::Error::other(line));
        }
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some(("content-length", said)) => length = said.parse().ok(),
                Some(("mcp-session-id", _)) => session.clone_from(&line),
                Some(_) => {}
                None => break,
            }
        }
        match length {
            Some(length) => self.skip(length)?,
            None => while self.part()? {},
        }
        Ok(session)
    }

    /// Reads one part; says whether there are more.
    fn part(&mut self) -> io::Result<bool> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
        self.skip(length + 2)?;
        Ok(length > 0)
    }

    fn skip(&mut self, length: usize) -> io::Result<()> {
        io::copy(&mut self.stream.by_ref().take(length as u64), &mut io::sink()).map(drop)
    }
}
