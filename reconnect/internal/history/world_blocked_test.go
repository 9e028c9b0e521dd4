package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Each function that a user gives to a Conn may be slow, block for a long time, call the Conn, or end its goroutine.

// drawBlocked draws such functions, from a stream of its own.
func (p *Plan) drawBlocked() {
	r := p.stream(21)
	if r.IntN(3) > 0 {
		return
	}
	p.Settings.Blocks, p.Settings.Receives = true, r.IntN(3) == 0
	for range 1 + r.IntN(5) {
		p.Events = append(p.Events, Event{len(p.Events), 1 + upTo(r, p.Length), anyCallback.name})
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
}

// allCallbacks are the functions of the user, by the names that w.callback gets.
var allCallbacks = append([]string{
	"GateStart", "GateDone", "DialHung", "DialDone", "SessionStart", "RotateDone",
	"WaitDone", "ConnDone", "ProbeDone", "SlowHandler", "Overdue",
	"Layer.Open", "Layer.Ready", "Layer.Receive", "Layer.Lost", "Layer.End",
	"Classify", "Policy", "Rotate.Allowed", "Stall.Expected", "Probe", "KeepAlive.Message",
}, callbacks...)

// anyCallback is an event: the next call of one of allCallbacks blocks or acts.
var anyCallback = happening{"any callback", 0, func(w *world, r *rand.Rand, e Event) {
	if !w.set.Blocks || w.calmed.Load() {
		return
	}
	name := allCallbacks[r.IntN(len(allCallbacks))]
	switch n := r.IntN(8); {
	case n < 4:
		d, deaf := time.Second+upTo(r, time.Minute), r.IntN(2) == 0
		w.actNext(name, func(context.Context) { w.block(name, d, deaf) })
	case n == 4 && r.IntN(3) == 0:
		w.actNext(name, w.goexit(name))
	case n == 5:
		w.actNext(name, func(ctx context.Context) {
			m, wait := w.newMessage(r, fmt.Sprint("n", e.Index)), time.Duration(0)
			if mayWait(name) {
				wait = 1 + upTo(r, 3*time.Second)
			}
			w.sendMessage(r, m, wait)
		})
	default:
		w.actNext(name, w.act(r, e, name))
	}
}}

// mayWait reports whether a function may wait for a while without any effect on the other checks.
func mayWait(name string) bool { return name != "WaitStart" && name != "DialStart" }

// block blocks for d, or until the faults are over or, unless it is deaf, the Conn ends. It checks
// that the function is reported as slow.
func (w *world) block(name string, d time.Duration, deaf bool) {
	reports := name == "SlowHandler" || name == "Overdue"
	w.mu.Lock()
	w.blocked, w.held = true, true
	before := w.reports[what(name)]
	if reports {
		w.reporters++
	}
	w.mu.Unlock()
	from := w.now()
	for w.now() < from+d && !w.calmed.Load() && (deaf || !w.ending()) {
		time.Sleep(min(from+d-w.now(), 500*time.Millisecond))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if reports {
		w.reporters--
		w.reportedAt = w.now()
	}
	mute := w.reporters > 0 || w.reportedAt > from // what reports slow calls was slow
	if took := w.now() - from; timed(name) && !mute && took > w.silence()+6*time.Second {
		w.check(SlowIsReported, w.reports[what(name)] > before, "%s has taken %v", name, took)
	}
}

// timed reports whether a function is timed. The hooks that report slow functions are not, and neither
// are functions that have a limit of their own.
func timed(name string) bool {
	return !slices.Contains([]string{"SlowHandler", "Overdue", "OnSession", "Layer.Open", "Probe"}, name)
}

// what returns the name of a function in SlowHandler and Overdue.
func what(name string) string {
	switch name {
	case "OnSession", "OnMessage", "OnSeam", "OnReceipt", "Keep", "Classify", "Policy", "Probe", "the gate's done":
		return name
	}
	if strings.Contains(name, ".") { // of a Layer or of another option
		return name
	}
	return "Trace." + name
}

// reported notes that a function was reported as slow.
func (w *world) reported(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports[what]++
}

// blocking adds a layer with all functions, and lets those of the other options that are set act.
func (w *world) blocking(o *reconnect.Options) {
	if !w.set.Blocks {
		return
	}
	l := &reconnect.Layer{
		Open: func(ctx context.Context, _ *reconnect.Opening) error {
			w.callback("Layer.Open", ctx)
			return nil
		},
		Ready: func(uint64) { w.callback("Layer.Ready", nil) },
		Lost:  func(uint64, error) { w.callback("Layer.Lost", nil) },
		End:   func(error) { w.callback("Layer.End", nil) },
	}
	if w.set.Receives {
		l.Receive = func(reconnect.Message) bool {
			w.callback("Layer.Receive", nil)
			return false
		}
	}
	o.Layers = append(o.Layers, l)
	if classify := o.Run.Classify; classify != nil {
		o.Run.Classify = func(err error) backoff.Verdict {
			v := classify(err) // notes when the session or the dial has ended
			w.callback("Classify", nil)
			return v
		}
	}
	if p := o.Run.Policy; p != nil {
		o.Run.Policy = acting{p, w}
	}
	if allowed := o.Rotate.Allowed; allowed != nil {
		o.Rotate.Allowed = func(at time.Time) bool {
			w.callback("Rotate.Allowed", nil)
			return allowed(at)
		}
	}
	if expected := o.Stall.Expected; expected != nil {
		o.Stall.Expected = func(at time.Time) bool {
			w.callback("Stall.Expected", nil)
			return expected(at)
		}
	}
	if probe := o.Liveness.Probe; probe != nil {
		o.Liveness.Probe = func(ctx context.Context, write func(conn.Message) error) error {
			w.callback("Probe", ctx)
			return probe(ctx, write)
		}
	}
	if message := o.KeepAlive.Message; message != nil {
		o.KeepAlive.Message = func() conn.Message {
			w.callback("KeepAlive.Message", nil)
			return message()
		}
	}
}

// acting is a policy that may act.
type acting struct {
	backoff.Policy
	w *world
}

func (p acting) Next(h backoff.History, r *rand.Rand) (backoff.Step, bool) {
	p.w.callback("Policy", nil)
	return p.Policy.Next(h, r)
}

// SlowIsReported is the invariant that block checks.
const SlowIsReported Invariant = "12: a callback that blocks is reported, by its name"
