// Package outbox has the queue of the messages that wait to be written: those of Send, and those of
// a Write that waits for others or for a session. It writes them by the links that are attached, and
// gives each one fate.
package outbox
