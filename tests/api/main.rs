//! The API from outside: whole servers, each on a database of its own, asked over HTTP.
//!
//! SQL is used only to arrange what HTTP cannot, or to look at what must never leave the server. Every answer, whatever a
//! test is about, passes the checks of [`checks`] on its way: its form, its headers, and that the document tells of it. What was asked
//! passes those of [`asked`] if it was accepted.

mod asked;
mod checks;
mod database;
mod exports;
mod follow;
mod helpers;
mod play;
mod receiver;
mod schemas;

mod accounts;
mod clocks;
mod concurrency;
mod connections;
mod deliveries;
mod durability;
mod events;
mod games;
mod history;
mod idempotency;
mod invitations;
mod leaving;
mod limits;
mod lists;
mod moves;
mod operations;
mod outsiders;
mod plans;
mod players;
mod privacy;
mod problems;
mod ratings;
mod receivers;
mod rematch;
mod requests;
mod rulesets;
mod seats;
mod secrecy;
mod statistics;
mod tokens;
mod turns;
mod webhooks;
