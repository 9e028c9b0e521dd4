package meter

import (
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Instrument is one thing that is measured.
type Instrument struct {
	Name    string  // words with dots between them, without a prefix, such as "dial.duration"
	Kind    Kind    // how it is measured
	Unit    string  // in the notation of UCUM: "s", "By", or what is counted: "{dial}"
	Labels  []Label // beside the name of the connection; two at most
	Help    string  // a sentence
	Buckets []float64

	// Zero has the values of labels that start with 0, so that a query sees the first event as a
	// change.
	Zero []Values

	// read returns the measurements of the totals of one name: one for each value of the label. Nil: a
	// Recorder gets the events.
	read func(t *Totals) []float64
	sets bool // it is about subscriptions
}

// Collected reports whether the instrument is read by Collect. If not, a Recorder gets its events.
func (i *Instrument) Collected() bool { return i.read != nil }

// Read gives the measurements of the totals of one name. A counter is there if there ever was what it
// counts; a gauge is there as long as a connection is.
func (i *Instrument) Read(t *Totals, give func(value float64, v Values)) {
	there := t.Conns+int(t.Ended) > 0
	switch {
	case i.sets && i.Kind == Counter:
		there = t.EverSets
	case i.sets:
		there = t.Sets > 0
	case i.Kind == Counter:
		there = t.EverConns
	}
	if !there {
		return
	}
	for j, value := range i.read(t) {
		var v Values
		if len(i.Labels) > 0 {
			v[0] = i.Labels[0].Values[j]
		}
		give(value, v)
	}
}

// list returns counts as measurements.
func list(counts ...uint64) (all []float64) {
	for _, n := range counts {
		all = append(all, float64(n))
	}
	return all
}

// moment returns a time as a measurement: seconds since 1970, to the millisecond; 0 for a zero time.
func moment(t time.Time) []float64 {
	if t.IsZero() {
		return []float64{0}
	}
	return []float64{float64(t.UnixMilli()) / 1000}
}

// Kind is how an instrument is measured.
type Kind uint8

// The kinds.
const (
	Counter   Kind = iota // goes up only
	UpDown                // how many there are now; may be added up over names
	Gauge                 // a moment, in seconds since 1970, of the worst of the connections of the name; must not be added up
	Histogram             // how long something took, in seconds
)

// Label is a label beside the name of the connection.
type Label struct {
	Name   string
	Values []string // all possible values
}

// Values are the values of the labels of an instrument, in their order.
type Values [2]string

// The values of labels.
const (
	OK       = "ok"
	Failed   = "failed"
	Canceled = "canceled" // we ended it ourselves
	None     = "none"     // the reason if nothing has failed
	Replaced = "replaced"
	Closed   = "closed"
	Yes      = "true"
	No       = "false"
	Wanted   = "wanted"
	Held     = "held"
	Other    = "other"
)

var (
	states = []string{"connecting", "opening", "ready", "waiting", "at_gate", "ended"}
	// functions are those of reconnect.Overdue, with one value for all hooks of Trace, and for all of a Layer.
	functions = []string{
		"dial", "serve", "OnSession", "OnMessage", "OnSeam", "Keep", "OnReceipt", layer,
		"Policy", "Classify", "the gate's done", "Close",
		"Probe", "KeepAlive.Message", "Rotate.Allowed", "Stall.Expected", hook, "reader", Other,
	}
	bySeconds  = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60}
	byMinutes  = []float64{0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400}
	bySessions = []float64{1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 604800}
)

// These are values of the label function.
const (
	hook  = "a hook"
	layer = "a layer"
)

// function returns the value of the label for the function what.
func function(what string) string {
	switch {
	case strings.HasPrefix(what, "Trace."):
		return hook
	case strings.HasPrefix(what, "Layer."):
		return layer
	case slices.Contains(functions, what):
		return what
	}
	return Other
}

// reasons returns the values of a label reason.
func reasons(more ...string) (list []string) {
	for r := backoff.ReasonOther; r == backoff.ReasonOther || r.String() != backoff.ReasonOther.String(); r++ {
		list = append(list, r.String())
	}
	return append(list, more...)
}

// These are the instruments of events.
var (
	dials = &Instrument{
		Name: "dials", Kind: Counter, Unit: "{dial}",
		Labels: []Label{{"outcome", []string{OK, Failed, Canceled}}, {"reason", reasons(None)}},
		Help:   "Dials that have ended. Canceled: another dial was answered first, or the connection was closed.",
		Zero:   []Values{{OK, None}, {Canceled, None}},
	}
	dialDuration = &Instrument{
		Name: "dial.duration", Kind: Histogram, Unit: "s", Labels: []Label{{"outcome", []string{OK, Failed, Canceled}}},
		Help: "How long a dial took, without its wait at the gate.", Buckets: bySeconds,
		Zero: []Values{{OK}, {Failed}},
	}
	dialsHung = &Instrument{
		Name: "hung_dials", Kind: Counter, Unit: "{dial}",
		Help: "Dials whose handshake was not answered in time, so that another one has begun beside them.",
		Zero: []Values{{}},
	}
	gateWait = &Instrument{
		Name: "gate.wait", Kind: Histogram, Unit: "s", Labels: []Label{{"outcome", []string{OK, Failed, Canceled}}},
		Help:    "How long a dial has waited at the gate, if there is one. Failed: the gate did not let the dial through. Canceled: as for dials.",
		Buckets: byMinutes,
	}
	sessions = &Instrument{
		Name: "sessions", Kind: Counter, Unit: "{session}",
		Help: "Sessions that have begun: connections that were dialed.",
		Zero: []Values{{}},
	}
	sessionsReady = &Instrument{
		Name: "ready_sessions", Kind: Counter, Unit: "{session}",
		Help: "Sessions that became ready.",
		Zero: []Values{{}},
	}
	sessionDuration = &Instrument{
		Name: "session.duration", Kind: Histogram, Unit: "s", Labels: []Label{{"reason", reasons()}},
		Help: "How long a session lasted, from the end of its dial on, and why it has ended.", Buckets: bySessions,
	}
	seams = &Instrument{
		Name: "seams", Kind: Counter, Unit: "{seam}", Labels: []Label{{"planned", []string{Yes, No}}},
		Help: "Sessions that have ended after they were ready. Planned: a rotation has replaced the session. A session that Conn.Redial has ended is a loss. The end of the connection itself does not count.",
		Zero: []Values{{Yes}, {No}},
	}
	outageDuration = &Instrument{
		Name: "outage.duration", Kind: Histogram, Unit: "s", Labels: []Label{{"planned", []string{Yes, No}}},
		Help: "How long no session was ready, from a loss until the next one was ready.", Buckets: byMinutes,
		Zero: []Values{{No}},
	}
	waitDuration = &Instrument{
		Name: "wait.duration", Kind: Histogram, Unit: "s",
		Help: "How long a wait before a dial lasted.", Buckets: byMinutes,
		Zero: []Values{{}},
	}
	rotations = &Instrument{
		Name: "rotations", Kind: Counter, Unit: "{rotation}", Labels: []Label{{"outcome", []string{Replaced, Failed}}},
		Help: "Sessions that were to be replaced. Failed: the session was lost first, or no other one could be made.",
		Zero: []Values{{Replaced}, {Failed}},
	}
	probes = &Instrument{
		Name: "probes", Kind: Counter, Unit: "{probe}", Labels: []Label{{"outcome", []string{OK, Failed, Canceled}}},
		Help: "Probes of a silent peer. Canceled: the session has ended meanwhile, or Conn.Check has begun another probe.",
		Zero: []Values{{OK}, {Failed}, {Canceled}},
	}
	probeDuration = &Instrument{
		Name: "probe.duration", Kind: Histogram, Unit: "s",
		Help: "How long an answered probe took: the round-trip time of a ping.", Buckets: bySeconds,
	}
	slowHandlers = &Instrument{
		Name: "slow_handlers", Kind: Counter, Unit: "{call}",
		Help: "Calls of a function of the program's that took longer than a third of the limit on silence.",
		Zero: []Values{{}},
	}
	overdue = &Instrument{
		Name: "overdue", Kind: Counter, Unit: "{report}", Labels: []Label{{"function", functions}},
		Help: "Reports of a function that has not returned. Reader: the program does not read a full inbox.",
	}
	ends = &Instrument{
		Name: "ends", Kind: Counter, Unit: "{connection}", Labels: []Label{{"outcome", []string{Closed, Failed}}},
		Help: "Connections that have ended for good. Failed: the program has not closed the connection.",
		Zero: []Values{{Closed}, {Failed}},
	}
)

// collected are the instruments of the counts and the state of a Conn.
var collected = []*Instrument{{
	Name: "connections", Kind: UpDown, Unit: "{connection}", Labels: []Label{{"state", states}},
	Help: "Connections in a state. Ended: the connection has given up, and no other connection has begun with its name since.",
	read: func(t *Totals) []float64 {
		return list(t.States[0]-t.AtGate, t.States[1], t.States[2], t.States[3], t.AtGate, t.Ended)
	},
}, {
	Name: "flapping.connections", Kind: UpDown, Unit: "{connection}",
	Help: "Connections that were lost five times or more within the last 15 minutes. A rotation is no loss.",
	read: func(t *Totals) []float64 { return list(t.Flapping) },
}, {
	Name: "failing_rotations", Kind: UpDown, Unit: "{rotation}",
	Help: "Rotations in progress of which three dials or more have failed. " +
		"The session that is to be replaced is still ready, so that nothing else shows this.",
	read: func(t *Totals) []float64 { return list(t.Failing) },
}, {
	Name: "login.waits", Kind: UpDown, Unit: "{connection}",
	Help: "Connections that wait, before a dial, for the budget of logins.",
	read: func(t *Totals) []float64 { return list(t.Logins) },
}, {
	Name: "gate.probe.timestamp", Kind: Gauge, Unit: "s",
	Help: "When the next dial to a host that is down begins, for connections that wait for it at the gate; 0 if none waits, or the dial is under way. The earliest of the connections of the name. " +
		"The counter of dials has the reason why the last dial has failed.",
	read: func(t *Totals) []float64 { return moment(t.Probe) },
}, {
	Name: "away.timestamp", Kind: Gauge, Unit: "s",
	Help: "The time since which no session has been ready; 0 if one is ready. The earliest of the connections of the name.",
	read: func(t *Totals) []float64 { return moment(t.Away) },
}, {
	Name: "last_byte.timestamp", Kind: Gauge, Unit: "s",
	Help: "When the last byte came by the session that is ready; 0 if no session is ready. The earliest of the connections of the name.",
	read: func(t *Totals) []float64 { return moment(t.Heard) },
}, {
	Name: "received.messages", Kind: Counter, Unit: "{message}",
	Help: "Messages that were received.",
	read: func(t *Totals) []float64 { return list(t.Received) },
}, {
	Name: "received.bytes", Kind: Counter, Unit: "By",
	Help: "Bytes of the messages that were received.",
	read: func(t *Totals) []float64 { return list(t.ReceivedBytes) },
}, {
	Name: "sent.messages", Kind: Counter, Unit: "{message}",
	Help: "Messages that were written, including the messages of OnSession, Probe and KeepAlive.",
	read: func(t *Totals) []float64 { return list(t.Written) },
}, {
	Name: "sent.bytes", Kind: Counter, Unit: "By",
	Help: "Bytes of the messages that were written.",
	read: func(t *Totals) []float64 { return list(t.WrittenBytes) },
}, {
	Name: "fates", Kind: Counter, Unit: "{message}",
	Labels: []Label{{"fate", []string{reconnect.FateDropped.String(), reconnect.FateUnknown.String()}}},
	Help:   "Messages that were not written. Dropped: not a byte was sent, or the message was refused. Unknown: the connection died meanwhile.",
	read:   func(t *Totals) []float64 { return list(t.Dropped, t.Unknown) },
}, {
	Name: "queue.messages", Kind: UpDown, Unit: "{message}",
	Help: "Messages that wait to be written, or are being written.",
	read: func(t *Totals) []float64 { return list(t.Queued) },
}, {
	Name: "queue.bytes", Kind: UpDown, Unit: "By",
	Help: "Bytes of the data that Send has queued.",
	read: func(t *Totals) []float64 { return list(t.QueuedBytes) },
}, {
	Name: "queue.oldest.timestamp", Kind: Gauge, Unit: "s",
	Help: "When the oldest message that waits to be written was queued; 0 if none waits. The earliest of the connections of the name.",
	read: func(t *Totals) []float64 { return moment(t.Waiting) },
}, {
	Name: "unread.messages", Kind: UpDown, Unit: "{message}",
	Help: "Messages in the inbox.",
	read: func(t *Totals) []float64 { return list(t.Unread) },
}, {
	Name: "unread.bytes", Kind: UpDown, Unit: "By",
	Help: "Bytes of the messages in the inbox.",
	read: func(t *Totals) []float64 { return list(t.UnreadBytes) },
}, {
	Name: "subscriptions", Kind: UpDown, Unit: "{subscription}", sets: true, Labels: []Label{{"status", []string{Wanted, Held}}},
	Help: "Subscriptions that are wanted, and that the venue has confirmed to the session that is ready.",
	read: func(t *Totals) []float64 { return list(t.Wanted, t.Held) },
}, {
	Name: "subscription.refusals", Kind: Counter, Unit: "{subscription}", sets: true,
	Help: "Subscriptions that the venue has refused or ended.",
	read: func(t *Totals) []float64 { return list(t.Refusals) },
}, {
	Name: "subscription.unanswered", Kind: Counter, Unit: "{request}", sets: true,
	Help: "Requests of subscriptions that the venue has not answered in time.",
	read: func(t *Totals) []float64 { return list(t.Unanswered) },
}}

// Instruments returns all instruments, in the order of the tables. They must not be changed.
func Instruments() []*Instrument {
	return slices.Concat(collected, []*Instrument{
		dials, dialDuration, dialsHung, gateWait, waitDuration,
		sessions, sessionsReady, sessionDuration, seams, outageDuration, rotations, ends,
		probes, probeDuration, slowHandlers, overdue,
	})
}
