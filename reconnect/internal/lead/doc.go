// Package lead decides which of two goroutines reads a connection: its supervisor, or the reader, which is the
// goroutine that waits for a message in Read. A message that the reader reads itself is there sooner, and costs no
// switch to another goroutine. The name is from Leader/Followers (Schmidt and others, 2000): the goroutine that reads leads.
//
// # Who may read when
//
//	Supervisor   the supervisor reads, or puts what it has read into the inbox
//	Asked        as Supervisor, and the reader wants the turn
//	Free         nobody reads, and the supervisor waits
//	Reader       the reader reads, and the supervisor waits
//	Recalled     as Reader, and the supervisor wants the turn
//
// The supervisor gives the turn up only between two messages, when all that it has read is in the inbox. The reader
// reads only while the inbox is empty, and only messages that come as one plain frame. It gives the turn back at any
// other frame, at an error, and when more than one message has come: a burst is put into the inbox, which has limits.
// There is one exception: where a full inbox only blocks, a reader that takes a burst as fast as it comes keeps the turn.
//
// Between two calls of Read the turn is Free. If no Read comes, the supervisor has the turn again after two times
// [Lease] at most. Then it answers pings, and fills the inbox.
package lead
