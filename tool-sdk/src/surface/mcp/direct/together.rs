//! Messages that came in one line, and their answers, which leave in one.
//!
//! **Invariant:** the answers to a batch leave when nobody is left who could give another one:
//! a request that is taken back, or whose call has no end, keeps back no answer for ever.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::super::batch;
use super::super::message::{self, Fault};
use super::answer;
use super::out::Out;

/// The answers to one batch so far. Whoever still has one to give holds on to this.
pub(super) struct Together {
    out: Arc<Out>,
    answers: Mutex<Vec<u8>>,
}

/// Says an answer: to the peer, or to the others of its batch.
pub(super) fn say(out: &Out, batch: Option<&Together>, answer: impl FnOnce(&mut Vec<u8>)) {
    match batch {
        Some(batch) => batch.say(answer),
        None => out.say(answer),
    }
}

impl Together {
    fn say(&self, answer: impl FnOnce(&mut Vec<u8>)) {
        let mut answers = self.answers();
        let before = if answers.is_empty() { b'[' } else { b',' };
        answers.push(before);
        answer(&mut answers);
        // The end of a line, which comes after the last one only.
        answers.pop_if(|end| *end == b'\n');
    }

    /// Refuses a request where too much is answered already.
    pub(super) fn check(&self, line: &[u8]) -> Result<(), Fault> {
        if self.answers().len() <= batch::MOST_BYTES {
            return Ok(());
        }
        message::request(line).map_or(Ok(()), |id| Err(Fault::crowded(Some(id))))
    }

    /// Sends the answers that are there.
    fn leave(&self) {
        let mut answers = std::mem::take(&mut *self.answers());
        if !answers.is_empty() {
            answers.extend_from_slice(b"]\n");
            self.out.say(|queue| queue.append(&mut answers));
        }
    }

    fn answers(&self) -> MutexGuard<'_, Vec<u8>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Together {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The batches of one peer.
#[derive(Default)]
pub(super) struct Batches {
    /// What came together and is not looked at yet.
    messages: VecDeque<(Box<[u8]>, Arc<Together>)>,
    /// Those whose answers have not left.
    open: Vec<Weak<Together>>,
}

impl Batches {
    /// Takes a batch apart.
    pub(super) fn take(&mut self, line: &[u8], out: &Arc<Out>) -> Result<(), Fault> {
        let messages = batch::apart(line)?;
        if self.waiting() > batch::MOST_BYTES {
            return Err(Fault::crowded(None));
        }
        let together = Arc::new(Together { out: Arc::clone(out), answers: Mutex::default() });
        for message in messages {
            match message {
                Ok(text) => {
                    self.messages.push_back((text.as_bytes().into(), Arc::clone(&together)))
                }
                Err(fault) => together.say(|queue| answer::message(queue, &fault.answer())),
            }
        }
        self.open.push(Arc::downgrade(&together));
        Ok(())
    }

    /// The next message, and those that it came with.
    pub(super) fn next(&mut self) -> Option<(Box<[u8]>, Arc<Together>)> {
        self.messages.pop_front()
    }

    /// Sends all answers that are there: no others will come.
    pub(super) fn end(&mut self) {
        for together in self.open.drain(..).filter_map(|it| it.upgrade()) {
            together.leave();
        }
    }

    /// How many bytes of answers wait for others.
    fn waiting(&mut self) -> usize {
        self.open.retain(|it| it.strong_count() > 0);
        let open = self.open.iter().filter_map(Weak::upgrade);
        open.map(|it| it.answers().len()).sum()
    }
}
