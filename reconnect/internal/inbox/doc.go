// Package inbox has the queue of the messages that a Conn has received and that the application has
// not read yet. It knows no connection: the producer reads a message into the memory that
// [Inbox.Buffer] returns, and puts it.
package inbox
