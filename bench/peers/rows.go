package main

import (
	"fmt"
	"time"

	"github.com/redial-go/redial/bench/internal/pick"
)

// row is one thing that is measured of every peer.
type row struct {
	name    string
	title   string // what is measured
	columns []Column
	long    bool             // takes long, and is measured only when it is asked for
	takes   func(*peer) bool // nil: everybody

	// waits says that nothing is busy in this row, so that its rounds can be side by side.
	waits bool

	// one measures a peer, once; side measures all peers, side by side. A row has one
	// of them. A result has a figure for each column.
	one  func(x *exam) ([]float64, error)
	side func(x *exam, peers []string) (map[string][]float64, error)
}

// sizes are how much each row does.
type sizes struct {
	receive, send, redials int
	echo, echoAlone        int
	ticks                  int           // messages of "latency"
	every                  time.Duration // between two of them
	idle, idleMany         int
	idleLong, pairs        int           // connections; pairs of processes for as many as there can be
	inOne                  int           // connections of a process, at most
	settle                 time.Duration // before memory is measured
	feed                   feedOrder
	quiet                  time.Duration    // how long a silent server is waited for: nats.go notices it after 6 min
	outage                 [2]time.Duration // from a server's death to its return: the shortest and the longest
	back                   time.Duration    // how long a return is waited for
	wait                   time.Duration    // before a dial; 0: as each library has it
}

var (
	fullSizes = sizes{
		receive: 200_000, send: 100_000, redials: 200, echo: 100_000, echoAlone: 20_000, ticks: 5000, every: time.Millisecond, idle: 1000, idleMany: 10_000, idleLong: 50_000, pairs: 200,
		inOne: 10_000, settle: 200 * time.Millisecond, // many machines let a process have 20,000 files
		feed:  feedOrder{Count: 10_000, Resets: 10, Every: 4 * time.Millisecond},
		quiet: 390 * time.Second, outage: [2]time.Duration{time.Second, 10 * time.Second}, back: time.Minute,
	}
	shortSizes = sizes{ // of the tests
		receive: 500, send: 5 * burst, redials: 2, echo: 300, echoAlone: 100, ticks: 50, every: time.Millisecond, idle: 10, idleMany: 12, idleLong: 24, pairs: 2,
		inOne: 12, settle: 100 * time.Millisecond, // the site has taken all connections by then
		feed:  feedOrder{Count: 400, Resets: 2, Every: 2 * time.Millisecond},
		quiet: 300 * time.Millisecond, outage: [2]time.Duration{50 * time.Millisecond, 100 * time.Millisecond}, back: 20 * time.Second, wait: time.Millisecond,
	}
)

// perMessage are the columns of messages, and perIdle those of idle connections. The arguments
// are the Short names of some.
func perMessage(short, allocations string) []Column {
	return []Column{
		{Name: "ns", Ratio: true, Short: short}, {Name: "allocations", Digits: 2, Short: allocations}, {Name: "busy", Digits: 2},
	}
}

func perIdle(short, resident, opening string) []Column {
	return []Column{
		{Name: "bytes", Ratio: true, Short: short}, {Name: "of them stack"},
		{Name: "resident bytes", Ratio: true, Short: resident},
		{Name: "µs to open", Digits: 1, Short: opening}, {Name: "µs for one message", Digits: 1},
	}
}

// rowsOf returns the rows in their order.
func rowsOf(s sizes) []*row {
	messages := func(do string, size, count int) func(*exam) ([]float64, error) {
		return func(x *exam) ([]float64, error) { return x.messages(do, size, count) }
	}
	idle := func(count int, how idling) func(*exam) ([]float64, error) {
		return func(x *exam) ([]float64, error) { return x.idle(count, how) }
	}
	late := func(what string) []Column {
		return []Column{{Name: "µs, median", Digits: 1, Short: what + ", median, µs"}, {Name: "µs, 99 of 100", Digits: 1, Short: what + ", 99 of 100, µs"}}
	}
	return []*row{
		{name: "receive-128", title: "receive 128 B: CPU of the client per message", columns: perMessage("receive 128 B", "allocations"), one: messages("receive", 128, s.receive)},
		{name: "receive-4k", title: "receive 4 KiB: CPU of the client per message", columns: perMessage("receive 4 KiB", ""), one: messages("receive", 4096, s.receive/2)},
		{name: "send-64", title: fmt.Sprintf("%d sends of 128 B from one goroutine, answered together: CPU of the client per send", burst),
			columns: perMessage("send 64 x 128 B", ""), one: messages("send", 128, s.send)},
		{name: "echo-64", title: fmt.Sprintf("echo of 128 B, %d under way: CPU of the client per echo", burst),
			columns: perMessage("echo, 64 under way", ""), one: messages("echo", 128, s.echo)},
		{name: "echo-1", title: "echo of 128 B, one under way: CPU of the client per echo, and the fastest round trip",
			columns: []Column{{Name: "ns", Ratio: true, Short: "echo, one under way"}, {Name: "µs, fastest", Digits: 1, Short: "fastest round trip, µs"}, {Name: "allocations", Digits: 2}},
			one:     func(x *exam) ([]float64, error) { return x.alone(s.echoAlone) }},
		{name: "latency", title: fmt.Sprintf("a message of 128 B each %v: from the server's write to the application (with a broker, from the publication)", s.every),
			columns: late("late"), one: func(x *exam) ([]float64, error) { return x.latency("latency", s.ticks, s.every) }},
		{name: "machine", title: fmt.Sprintf("the same for two goroutines and a pipe, one message each %v: what the machine itself takes", s.every),
			columns: late("the machine itself"), takes: func(p *peer) bool { return p == all[0] },
			one: func(x *exam) ([]float64, error) { return x.latency("machine", s.ticks, s.every) }},
		{name: "tls-redial", title: "TLS redial: CPU per connection; the adapter closes and opens a peer that does not redial",
			columns: []Column{{Name: "µs", Ratio: true, Short: "TLS redial, client"}, {Name: "µs, server", Short: "TLS redial, server, µs"}, {Name: "resumed", Digits: 2, Short: "TLS sessions resumed"}},
			one:     func(x *exam) ([]float64, error) { return x.redials(s.redials) }},
		{name: "idle-1000", title: idleTitle(s.idle, ""),
			columns: perIdle("idle, 1,000", "resident, 1,000", ""),
			one:     idle(s.idle, idling{})},
		{name: "idle-1000-shared", title: idleTitle(s.idle, shared),
			columns: perIdle("", "", ""),
			takes:   shares, one: idle(s.idle, idling{shared: true})},
		{name: "idle-1000-takeover", title: idleTitle(s.idle, takeover),
			columns: perIdle("idle with takeover", "resident with takeover", ""),
			takes:   takesOver, one: idle(s.idle, idling{takeover: true})},
		{name: "idle-10000", title: idleTitle(s.idleMany, ""),
			columns: perIdle("idle, 10,000", "resident, 10,000", "CPU to open one of 10,000, µs"),
			one:     idle(s.idleMany, idling{})},
		{name: "idle-10000-shared", title: idleTitle(s.idleMany, shared),
			columns: perIdle("one dialer for 10,000", "resident, one dialer", "CPU to open one of these, µs"),
			takes:   shares, one: idle(s.idleMany, idling{shared: true})},
		{name: "killed", title: fmt.Sprintf("back after SIGKILL, within %v: from when the server listens again, a random time from %v to %v after its death", s.back, s.outage[0], s.outage[1]),
			columns: []Column{{Name: "s", Digits: 2, Short: "back after SIGKILL"}}, takes: redials,
			side: (*exam).killed},
		{name: "silent", title: fmt.Sprintf("a silent server is noticed, at the defaults, within %v", s.quiet),
			columns: []Column{{Name: "s", Digits: 1, Short: "silence noticed"}}, waits: true,
			side: (*exam).silent},
		{name: "gap", title: fmt.Sprintf("%d resets in %d numbered messages, one each %v: how many are missing, and how often the reader learned of it", s.feed.Resets, s.feed.Count, s.feed.Every),
			columns: []Column{{Name: "missing", Short: "missing of 10,000"}, {Name: "told", Short: "times the reader learned of it"}, {Name: "redials"}}, takes: redials,
			side: (*exam).gap},
		{name: "idle-50000", title: idleTitle(s.idleLong, ", in several processes"),
			columns: perIdle("idle, 50,000", "resident, 50,000", ""),
			long:    true, one: idle(s.idleLong, idling{})},
		{name: "idle-max", title: "as many idle connections as the machine holds, in several processes", long: true,
			columns: []Column{{Name: "connections", Short: "connections at most"}, {Name: "bytes of one"}, {Name: "µs for one message", Digits: 1}},
			one:     (*exam).most},
	}
}

// Ends of the titles of rows: the clients share what they can; they have exchanged compressed messages.
const (
	shared   = ", one dialer for all"
	takeover = ", compressed with context takeover, after a message of 1 KiB and its echo"
)

func idleTitle(count int, how string) string {
	return fmt.Sprintf("%d idle connections%s: live heap and stack of one, resident memory of one, "+
		"CPU to open one, CPU of the client per message if each gets one", count, how)
}

func redials(p *peer) bool { return p.redials }

// shares reports whether a peer can share something, or is the base.
func shares(p *peer) bool { return p.share != nil || p == all[0] }

func takesOver(p *peer) bool { return p.takeover }

// Rows returns the names of the rows, and of those that take long.
func Rows() (usual, long []string) {
	for _, r := range rowsOf(fullSizes) {
		if r.long {
			long = append(long, r.name)
		} else {
			usual = append(usual, r.name)
		}
	}
	return usual, long
}

func findRow(rows []*row, name string) (*row, error) {
	return pick.One("row", name, rows, func(r *row) string { return r.name })
}
