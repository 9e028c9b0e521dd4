package scene

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Form is what has happened to a Conn before a test begins. The promises of a Conn hold in each form:
// after a rotation another supervisor keeps the connection open, and the one before may still be
// reading.
type Form struct {
	Rotations uint64            // how many sessions were replaced
	Overlap   reconnect.Overlap // of each rotation
	drains    bool              // the last session that was replaced is still read, within Drain
	forbidden bool              // one more rotation was requested, and the server has forbidden it
}

// forms are the forms of InEachForm. In "twice" the second rotation was requested while the first
// session was still read, and began within Drain of the first.
var forms = map[string]Form{
	"fresh":       {},
	"forbidden":   {forbidden: true},
	"hold":        {Rotations: 1, Overlap: reconnect.OverlapHold},
	"mix":         {Rotations: 1, Overlap: reconnect.OverlapMix},
	"break first": {Rotations: 1, Overlap: reconnect.OverlapBreakFirst},
	"twice":       {Rotations: 2, Overlap: reconnect.OverlapHold, drains: true},
}

// serverForms are the forms of a Conn to a server of its own, as in InEachWSForm.
var serverForms = map[string]Form{
	"fresh": forms["fresh"], "hold": forms["hold"], "mix": forms["mix"], "break first": forms["break first"],
}

// InEachForm runs a test in virtual time once for each form, which Ready and Down bring a Conn into.
func InEachForm(t *testing.T, f func(t *testing.T, s *Scene)) {
	t.Helper()
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			InBubble(t, func(t *testing.T, s *Scene) {
				s.Form = form
				f(t, s)
			})
		})
	}
}

// Ready opens a Conn, brings it into the form of s, and returns it with the peer of its session, whose
// number is s.Session. The reader has the seams so far. The time of s starts again.
func (s *Scene) Ready(o *reconnect.Options) (*reconnect.Conn, *conntest.Fake) {
	s.t.Helper()
	if o == nil {
		o = new(reconnect.Options)
	}
	if o.Run.OneConnection {
		s.BreakFirst()
	}
	o.Rotate.Overlap = s.Form.Overlap
	c := s.Open(o)
	peer := s.accepted(c, 1)
	var before *conntest.Fake // the last session that was replaced, or nil
	for n := range s.Form.Rotations {
		c.Rotate(n+1, reconnect.Advice{})
		if before != nil {
			endInOrder(before)
		}
		next := s.accepted(c, n+2)
		before, peer = peer, next
	}
	s.Session = s.Form.Rotations + 1
	seams := s.Form.Rotations
	switch {
	case s.Form.drains:
		s.before = before
		seams--
	case before != nil:
		endInOrder(before)
	}
	if s.Form.forbidden {
		c.Rotate(s.Session, reconnect.Advice{})
		s.WantDial().Refuse(backoff.Permanent(ErrLost))
		if l := o.Run.Logins; l != nil {
			require.NoError(s.t, l.Take(s.t.Context())) // as if the session had been refused after its login
		}
	}
	s.readSeams(c, o, seams)
	s.restart()
	return c, peer
}

// options returns o with the overlap of f, or new options if o is nil. It skips the test if o excludes that
// overlap.
func (f Form) options(t *testing.T, o *reconnect.Options) *reconnect.Options {
	t.Helper()
	if o == nil {
		o = new(reconnect.Options)
	}
	if o.Run.OneConnection && f.Overlap != reconnect.OverlapBreakFirst && f.Rotations > 0 {
		t.Skip("with OneConnection each rotation breaks first")
	}
	if f.Rotations > 0 {
		o.Rotate.Overlap = f.Overlap
	}
	return o
}

// wantRotated waits until the rotation to a session is over, and reads its seam unless o has OnMessage.
func wantRotated(t *testing.T, c *reconnect.Conn, o *reconnect.Options, session uint64) {
	t.Helper()
	for range 60 {
		synctest.Wait()
		if status := c.Status(); status.State == reconnect.StateReady && status.Session == session && !status.Rotating {
			if o.OnMessage == nil {
				WantSeam(t, c)
			}
			return
		}
		time.Sleep(time.Second)
	}
	t.Fatalf("no rotation to session %d", session)
}

// accepted accepts the next dial, and returns the peer when its session is ready.
func (s *Scene) accepted(c *reconnect.Conn, session uint64) *conntest.Fake {
	s.t.Helper()
	peer := s.WantDial().Accept()
	for range 60 { // because OnSession may take some time
		if status := c.Status(); status.State == reconnect.StateReady && status.Session == session {
			return peer
		}
		time.Sleep(time.Second)
		synctest.Wait()
	}
	s.t.Fatalf("session %d is not ready", session)
	return nil
}

// Settled is Ready for a test which needs the messages of the session without those of the one before:
// OverlapHold holds them while that is read.
func (s *Scene) Settled(o *reconnect.Options) (*reconnect.Conn, *conntest.Fake) {
	s.t.Helper()
	c, peer := s.Ready(o)
	if s.before != nil {
		endInOrder(s.before)
		s.readSeams(c, o, 1)
	}
	return c, peer
}

// ReadyLogins returns how many logins Ready takes for the sessions before s.Session, if each logs in,
// and for a rotation that is forbidden.
func (f Form) ReadyLogins() int {
	if f.forbidden {
		return 1
	}
	return int(f.Rotations)
}

// DownLogins is like ReadyLogins for Down.
func (f Form) DownLogins() int {
	if f == (Form{}) {
		return 0
	}
	return f.ReadyLogins() + 1
}

// Down opens a Conn that has no session, and returns it with the dial for s.Session. Unless s is fresh,
// the session of Ready was lost after 3 s, which is less than Drain and long enough for a stable
// session. The reader has the seams so far. The time of s starts again when the dial begins.
func (s *Scene) Down(o *reconnect.Options) (*reconnect.Conn, *PendingDial) {
	s.t.Helper()
	if s.Form == (Form{}) {
		c := s.Open(o)
		d := s.WantDial()
		s.Session, d.At = 1, 0
		s.restart()
		return c, d
	}
	c, peer := s.Ready(o)
	time.Sleep(3 * time.Second)
	peer.Fail(ErrLost)
	d := s.WantDial()
	seams := uint64(1)
	if s.Form.drains {
		seams++
	}
	s.readSeams(c, o, seams)
	s.Session++
	d.At = 0
	s.restart()
	return c, d
}

// readSeams reads n seams, unless o has OnMessage or discards messages.
func (s *Scene) readSeams(c *reconnect.Conn, o *reconnect.Options, n uint64) {
	s.t.Helper()
	if o != nil && (o.OnMessage != nil || o.Inbox.Overflow == reconnect.InboxDiscard) {
		return
	}
	for range n {
		WantSeam(s.t, c)
	}
}

// SkipBreakFirst skips a test in which a dial of a rotation fails permanently: OverlapBreakFirst has closed the
// session before that dial, so that the Conn ends.
func (s *Scene) SkipBreakFirst() {
	s.t.Helper()
	if s.Form.Overlap == reconnect.OverlapBreakFirst {
		s.t.Skip("the Conn ends")
	}
}

// BreakFirst makes each rotation of s break first. It skips the test in a form that this excludes.
func (s *Scene) BreakFirst() {
	s.t.Helper()
	if s.Form.Overlap == reconnect.OverlapMix || s.Form.forbidden {
		s.t.Skip("each rotation breaks first, and a forbidden one ends the Conn")
	}
	s.Form.Overlap, s.Form.drains = reconnect.OverlapBreakFirst, false
}

// endInOrder lets a peer end its session with a close frame.
func endInOrder(peer *conntest.Fake) {
	peer.Fail(&conn.CloseError{Code: 1001})
	synctest.Wait()
}
