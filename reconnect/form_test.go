package reconnect_test

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

// form is what has happened to a Conn before a test begins. The promises of a Conn hold in each form:
// after a rotation another supervisor keeps the connection open, and the one before may still be
// reading.
type form struct {
	rotations uint64            // how many sessions were replaced
	overlap   reconnect.Overlap // of each rotation
	drains    bool              // the last session that was replaced is still read, within Drain
	forbidden bool              // one more rotation was requested, and the server has forbidden it
}

// forms are the forms of inEachForm. In "twice" the second rotation was requested while the first
// session was still read, and began within Drain of the first.
var forms = map[string]form{
	"fresh":       {},
	"forbidden":   {forbidden: true},
	"hold":        {rotations: 1, overlap: reconnect.OverlapHold},
	"mix":         {rotations: 1, overlap: reconnect.OverlapMix},
	"break first": {rotations: 1, overlap: reconnect.OverlapBreakFirst},
	"twice":       {rotations: 2, overlap: reconnect.OverlapHold, drains: true},
}

// serverForms are the forms of a Conn to a server of its own, as in inEachWSForm.
var serverForms = map[string]form{
	"fresh": forms["fresh"], "hold": forms["hold"], "mix": forms["mix"], "break first": forms["break first"],
}

// inEachForm runs a test in virtual time once for each form, which ready and down bring a Conn into.
func inEachForm(t *testing.T, f func(t *testing.T, s *scene)) {
	t.Helper()
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				s.form = form
				f(t, s)
			})
		})
	}
}

// ready opens a Conn, brings it into the form of s, and returns it with the peer of its session, whose
// number is s.session. The reader has the seams so far. The time of s starts again.
func (s *scene) ready(o *reconnect.Options) (*reconnect.Conn, *conntest.Fake) {
	s.t.Helper()
	if o == nil {
		o = new(reconnect.Options)
	}
	if o.Run.OneConnection {
		s.breakFirst()
	}
	o.Rotate.Overlap = s.form.overlap
	c := s.open(o)
	peer := s.accepted(c, 1)
	var before *conntest.Fake // the last session that was replaced, or nil
	for n := range s.form.rotations {
		c.Rotate(n+1, reconnect.Advice{})
		if before != nil {
			endInOrder(before)
		}
		next := s.accepted(c, n+2)
		before, peer = peer, next
	}
	s.session = s.form.rotations + 1
	seams := s.form.rotations
	switch {
	case s.form.drains:
		s.before = before
		seams--
	case before != nil:
		endInOrder(before)
	}
	if s.form.forbidden {
		c.Rotate(s.session, reconnect.Advice{})
		s.wantDial().refuse(backoff.Permanent(errLost))
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
func (f form) options(t *testing.T, o *reconnect.Options) *reconnect.Options {
	t.Helper()
	if o == nil {
		o = new(reconnect.Options)
	}
	if o.Run.OneConnection && f.overlap != reconnect.OverlapBreakFirst && f.rotations > 0 {
		t.Skip("with OneConnection each rotation breaks first")
	}
	if f.rotations > 0 {
		o.Rotate.Overlap = f.overlap
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
				wantSeam(t, c)
			}
			return
		}
		time.Sleep(time.Second)
	}
	t.Fatalf("no rotation to session %d", session)
}

// accepted accepts the next dial, and returns the peer when its session is ready.
func (s *scene) accepted(c *reconnect.Conn, session uint64) *conntest.Fake {
	s.t.Helper()
	peer := s.wantDial().accept()
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

// settled is ready for a test which needs the messages of the session without those of the one before:
// OverlapHold holds them while that is read.
func (s *scene) settled(o *reconnect.Options) (*reconnect.Conn, *conntest.Fake) {
	s.t.Helper()
	c, peer := s.ready(o)
	if s.before != nil {
		endInOrder(s.before)
		s.readSeams(c, o, 1)
	}
	return c, peer
}

// readyLogins returns how many logins ready takes for the sessions before s.session, if each logs in,
// and for a rotation that is forbidden.
func (f form) readyLogins() int {
	if f.forbidden {
		return 1
	}
	return int(f.rotations)
}

// downLogins is like readyLogins for down.
func (f form) downLogins() int {
	if f == (form{}) {
		return 0
	}
	return f.readyLogins() + 1
}

// down opens a Conn that has no session, and returns it with the dial for s.session. Unless s is fresh,
// the session of ready was lost after 3 s, which is less than Drain and long enough for a stable
// session. The reader has the seams so far. The time of s starts again when the dial begins.
func (s *scene) down(o *reconnect.Options) (*reconnect.Conn, *pendingDial) {
	s.t.Helper()
	if s.form == (form{}) {
		c := s.open(o)
		d := s.wantDial()
		s.session, d.at = 1, 0
		s.restart()
		return c, d
	}
	c, peer := s.ready(o)
	time.Sleep(3 * time.Second)
	peer.Fail(errLost)
	d := s.wantDial()
	seams := uint64(1)
	if s.form.drains {
		seams++
	}
	s.readSeams(c, o, seams)
	s.session++
	d.at = 0
	s.restart()
	return c, d
}

// readSeams reads n seams, unless o has OnMessage or discards messages.
func (s *scene) readSeams(c *reconnect.Conn, o *reconnect.Options, n uint64) {
	s.t.Helper()
	if o != nil && (o.OnMessage != nil || o.Inbox.Overflow == reconnect.InboxDiscard) {
		return
	}
	for range n {
		wantSeam(s.t, c)
	}
}

// skipBreakFirst skips a test in which a dial of a rotation fails permanently: OverlapBreakFirst has closed the
// session before that dial, so that the Conn ends.
func (s *scene) skipBreakFirst() {
	s.t.Helper()
	if s.form.overlap == reconnect.OverlapBreakFirst {
		s.t.Skip("the Conn ends")
	}
}

// breakFirst makes each rotation of s break first. It skips the test in a form that this excludes.
func (s *scene) breakFirst() {
	s.t.Helper()
	if s.form.overlap == reconnect.OverlapMix || s.form.forbidden {
		s.t.Skip("each rotation breaks first, and a forbidden one ends the Conn")
	}
	s.form.overlap, s.form.drains = reconnect.OverlapBreakFirst, false
}

// endInOrder lets a peer end its session with a close frame.
func endInOrder(peer *conntest.Fake) {
	peer.Fail(&conn.CloseError{Code: 1001})
	synctest.Wait()
}

func TestFormsAreWhatTheySay(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c, _ := s.ready(nil)
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, s.form.rotations+1, s.session)
		require.Equal(t, s.session, c.Status().Session)
		require.Equal(t, s.form.drains, c.Status().Rotating)
		wantNothing(t, c)
		time.Sleep(time.Minute)
		require.Equal(t, s.session, c.Status().Session)
		require.Equal(t, s.form.rotations, c.Stats().Rotations)
	})
	inEachForm(t, func(t *testing.T, s *scene) {
		c, d := s.down(nil)
		require.Equal(t, reconnect.StateConnecting, c.State())
		wantNothing(t, c)
		d.accept()
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, s.session, c.Status().Session)
	})
}
