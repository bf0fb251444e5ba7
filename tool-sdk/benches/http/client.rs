//! A client that measures: calls one after the other on one connection, and 64 at a time, each on a
//! connection of its own.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Instant;

use crate::figures::{Figures, median};
use crate::server_process::{own, processor_time};

pub(crate) const TOKEN: &str = "bench-0123456789abcdef0123456789abcdef";
const ALONE: usize = 10_000;
const DEEP: usize = 60_000;
const IN_FLIGHT: usize = 64;

pub(crate) fn measure(lane: &str) -> io::Result<Figures> {
    let begun = Instant::now();
    let mut child = own(lane)?.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let measured = measure_server(&mut child, begun);
    child.kill()?;
    child.wait()?;
    measured
}

fn measure_server(server: &mut Child, begun: Instant) -> io::Result<Figures> {
    let mut address = String::new();
    let stdout = server.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    BufReader::new(stdout).read_line(&mut address)?;
    let address = address.trim();
    let mut connections = vec![Connection::open(address)?];
    connections[0].call(1)?;
    let start = begun.elapsed().as_secs_f64() * 1e3;
    while connections.len() < IN_FLIGHT {
        connections.push(Connection::open(address)?);
    }
    call_in_rounds(&mut connections, DEEP / 10)?;
    let before = processor_time(server)?;
    let mut times = Vec::with_capacity(ALONE);
    for number in 0..ALONE {
        let begun = Instant::now();
        connections[0].call(number)?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    let between = processor_time(server)?;
    let deep = Instant::now();
    call_in_rounds(&mut connections, DEEP)?;
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
fn call_in_rounds(connections: &mut [Connection], calls: usize) -> io::Result<()> {
    for round in 0..calls / connections.len() {
        for connection in &mut *connections {
            connection.send(round)?;
        }
        for connection in &mut *connections {
            connection.receive()?;
        }
    }
    Ok(())
}

struct Connection {
    stream: BufReader<TcpStream>,
    /// The head of each request, without its length.
    head: String,
    body: Vec<u8>,
}

impl Connection {
    fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let head = format!(
            "POST /v1/tools/add HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nAccept: application/json\r\n"
        );
        Ok(Self { stream: BufReader::new(stream), head, body: Vec::new() })
    }

    fn call(&mut self, number: usize) -> io::Result<()> {
        self.send(number)?;
        self.receive()
    }

    fn send(&mut self, number: usize) -> io::Result<()> {
        let body = format!("{{\"a\":{number},\"b\":7}}");
        let request = format!("{}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
        self.stream.get_mut().write_all(request.as_bytes())
    }

    /// Reads one response, which has a length.
    fn receive(&mut self) -> io::Result<()> {
        let (mut length, mut line) = (0, String::new());
        self.stream.read_line(&mut line)?;
        if !line.starts_with("HTTP/1.1 200") {
            return Err(io::Error::other(line));
        }
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap_or_default(),
                Some(_) => {}
                None => break,
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body)
    }
}
