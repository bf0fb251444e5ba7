//! `POST /v1/batch`: several calls of one message.
