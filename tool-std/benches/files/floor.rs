//! The same work without a tool around it, as fast as it is known to go.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use memchr::{memchr_iter, memmem};

/// Reads blocks until line `first` is there, and shows nothing.
pub(crate) fn skip_lines(path: &Path, first: usize) -> usize {
    let mut file = File::open(path).unwrap();
    let mut block = vec![0; 256 * 1024];
    let mut lines = 0;
    while lines < first {
        let filled = file.read(&mut block).unwrap();
        lines += memchr_iter(b'\n', &block[..filled]).count();
    }
    lines
}

/// Reads one block at the start.
pub(crate) fn first_block(path: &Path) -> usize {
    block_at(path, 0)
}

/// Reads one block somewhere.
pub(crate) fn block_at(path: &Path, at: u64) -> usize {
    let mut file = File::open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.read(&mut vec![0; 64 * 1024]).unwrap()
}

/// Reads a file whole, and writes it beside itself and in its place, down to the disk.
pub(crate) fn rewrite(path: &Path) -> usize {
    let text = fs::read(path).unwrap();
    let beside = path.with_extension("new");
    let mut file = File::create(&beside).unwrap();
    file.write_all(&text).unwrap();
    file.sync_all().unwrap();
    fs::rename(&beside, path).unwrap();
    1
}

/// All files below `folder`, ignored ones too.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found
}

/// How many of `files` hold `needle`, by reading every one of them whole on four threads.
pub(crate) fn holding(files: &[PathBuf], needle: &str) -> usize {
    let (next, holding) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let finder = memmem::Finder::new(needle);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut text = Vec::new();
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    text.clear();
                    File::open(file).unwrap().read_to_end(&mut text).unwrap();
                    holding.fetch_add(usize::from(finder.find(&text).is_some()), Ordering::Relaxed);
                }
            });
        }
    });
    holding.into_inner()
}
