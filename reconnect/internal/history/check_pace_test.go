package history

import (
	"time"

	"github.com/redial-go/redial/conn/conntest"
)

// readLag is how late the server may read what comes behind a login: it ends the other sessions first.
const readLag = 10 * time.Microsecond

// pace is what came by one connection, for PaceKept. world.mu guards it.
type pace struct {
	came []time.Duration // when the newest messages and pings came, as many as a window may have
}

// paced notes that a message of a size, or a ping, has come by a connection. A fault may let come together what was sent at different
// times, and so may a message that is larger than a window of the network, and a server that accepts late what was sent while a session
// opens.
func (w *world) paced(p *conntest.Pipe, size int) {
	if w.set.Pace == 0 || w.set.Apart || w.set.Reader == readLate { // where nobody reads, the server may wait for room for a pong, and read no more
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := w.piped(p)
	if size > 16_000 || len(rec.faults) > 0 || !w.of(rec.session).ready {
		rec.came = nil
		return
	}
	now := w.now()
	if n := len(rec.came) - w.set.Pace; n >= 0 {
		rec.came = rec.came[n:]
		took := now - rec.came[0]
		w.check(PaceKept, took >= time.Second-readLag, "%d in %v by session %d", w.set.Pace+1, took, rec.session)
	}
	rec.came = append(rec.came, now)
}
