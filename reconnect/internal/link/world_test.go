package link

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/budget"
)

var (
	errFirst  = errors.New("first")
	errSecond = errors.New("second")

	noLimit   budget.Window
	transport = &conntest.FakeOptions{Transport: true}
)

// never is when the tests wait no more.
const never = time.Hour

// world is a link and its peer.
type world struct {
	*Link
	peer  *conntest.Fake
	start time.Time
}

func newWorld(o *conntest.FakeOptions, window budget.Window) *world {
	w := &world{new(Link), conntest.NewFake(o), time.Now()}
	w.Begin(w.peer.Conn(), &Life{}, window)
	return w
}

// now returns the time since the beginning.
func (w *world) now() time.Duration { return time.Since(w.start) }

// inBubble runs a test in a bubble of its own.
func inBubble(t *testing.T, window budget.Window, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(nil, window)
		defer w.Close()
		test(t, w)
	})
}

// each runs a test for each row of a table, in a bubble of its own.
func each[R any](t *testing.T, window budget.Window, rows map[string]R, test func(t *testing.T, w *world, row R)) {
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			inBubble(t, window, func(t *testing.T, w *world) { test(t, w, row) })
		})
	}
}

// watched is an observer that counts its calls.
type watched struct{ heard, resumed, wrote int }

func (o *watched) NoteHeard()   { o.heard++ }
func (o *watched) NoteResumed() { o.resumed++ }
func (o *watched) NoteWrote()   { o.wrote++ }

// messages returns a message for each letter.
func messages(letters string) (ms []conn.Message) {
	for _, letter := range letters {
		ms = append(ms, conn.TextMessage(string(letter)))
	}
	return ms
}

// written returns what was written to the peer.
func (w *world) written() (texts string) {
	for _, m := range w.peer.Written() {
		texts += string(m.Data)
	}
	return texts
}
