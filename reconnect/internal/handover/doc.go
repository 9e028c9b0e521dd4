// Package handover is the machine by which one session takes the place of another that is well. A
// [Machine] hears each event of the two sessions, and returns the next act. It has no
// goroutine, lock, clock or I/O, so that a test can walk every state it can reach.
//
// # Words
//
//   - The old session is the one that is replaced. The old supervisor keeps it.
//   - The next session takes its place. The next supervisor makes it, except with [BreakFirst],
//     where the old supervisor makes the next session too.
//   - The supervisor that leads redials after a loss, and its state is the state of the Conn.
//   - The reader is the application. A message of the next session is held while the reader
//     has not got all of the old session.
//
// # The course
//
//	due -> making -> led -> over      the next session was ready, and the old one has ended
//	due -> making -> failed -> over   the next supervisor ended first, or was cancelled
//	due -> making -> over             BreakFirst: the old supervisor has made the next session, or could not
//	due -> dropped                    the old session was lost, or its supervisor ended, before anything began
//
// The next supervisor may come to lead in the stage making without a ready session, if the old
// session is lost first: then its dial is the redial.
package handover
