package history

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Plan is one history before it runs. All of it comes from its seed.
type Plan struct {
	Seed     uint64
	Length   time.Duration // for which things go wrong
	Settings Settings
	Events   []Event

	above   string   // one of aboveNames, which was not drawn; empty: it was drawn
	without []string // settings that were given their defaults
}

// Event is one thing that happens. What it does in detail is drawn from the seed of the plan and
// from Index, so that an event stays the same when others are left out.
type Event struct {
	Index int
	At    time.Duration
	Kind  string
}

// Settings are the options that were drawn. The zero value of each is the default of the library.
type Settings struct {
	Framing        int // 0: WebSocket; 1: lines; 2: length prefix
	Compression    bool
	Reader         int // one of the readers
	InboxMessages  int
	InboxBytes     int
	InboxOverflow  int
	WhenDown       int
	NoReceipts     bool // no OnReceipt: the fates of what Send accepts are counted only
	OutboxMessages int
	OutboxBytes    int
	OutboxAge      time.Duration
	OutboxOverflow int
	Keep           bool
	Silence        time.Duration // Liveness.Limit
	ProbeEvery     time.Duration
	ProbeByMessage bool
	KeepAlive      time.Duration
	Pace           int // messages a second
	Stall          time.Duration
	RotateAfter    time.Duration
	Overlap        int
	Drain          time.Duration
	OneConnection  bool
	MarkRefetch    bool
	Resumable      bool
	OpenTimeout    time.Duration
	CloseTimeout   time.Duration
	WriteTimeout   time.Duration
	Policy         int // one of the policies
	StableAfter    time.Duration
	StartSpread    time.Duration
	Gate           bool
	LoginFails     int // one in so many logins fails; 0: none
	LoginTakes     time.Duration
	Logins         int // so many logins are allowed in each LoginsPer; 0: any number
	LoginsPer      time.Duration
	Refusals       bool // backoff.ClassifyRefusals judges
	Deliver        bool // OnSession delivers a message
	Tick           time.Duration
	Lag            time.Duration // of each connection, one way
	TLS            bool
	Late           int           // how late a peer answers for a while, in tenths of Silence; 0: there is no such while
	Permits        int           // of the gate, at a time
	Rivals         int           // at the gate
	Ending         int           // one of the endings
	Early          bool          // it ends while things go wrong
	FaultsStay     bool          // connections that hang when the faults end go on hanging
	Above          int           // what is above the Conn
	EarlyState     bool          // of a Bridge: a fetch returns what the server had when the fetch began
	LedgerAge      time.Duration // of a Ledger: Options.Age
	DropOldest     bool          // of a Ledger: Options.DropOldest
	FetchesUnset   bool          // of a Bridge: Options.Fetches has its default
	Advised        bool          // advice names an address
	Torn           bool          // there are torn batches
	AskWait        bool          // of a Bridge and a Set: the server may say how long to wait when it refuses
	Forms          bool          // messages of the server come in all forms
	ReadLimit      int           // in bytes
	Prefix         int           // of Framing 2: one of the prefixes
	Odd            bool          // users make mistakes, and servers say too much
	Allowed        bool          // Rotate.Allowed is set
	Expected       bool          // Stall.Expected is set
	AwaitsReceipts bool          // OnSession awaits the receipts
	HoldsMark      bool          // OnSession holds the mark
	FetchesStop    bool          // of a Bridge: a fetch fails for good now and then
	TurnsOpenly    bool          // of a Bridge: a connection goes on when the server counts anew
	Unlimited      bool          // Liveness.Limit is negative
	ReaderTakes    time.Duration // for each message, until the faults are over
	Leads          bool          // the reader may read the connection itself
	Bursts         bool          // the server sends bursts of messages
	Hears          bool          // the history ends with a Shutdown and a reader that reads to the end
	Blocks         bool          // callbacks block, and each of them may act
	Receives       bool          // of Blocks: a layer has Receive
	Lasts          bool          // faults of the server last until the faults are over
	Dues           bool          // there are events after which something is due
	ShortDrain     time.Duration // replaces Drain
	Turns          bool          // there are events that follow a rotation
	Resets         bool          // peers reset connections of which messages are unread
	Spares         bool          // of Resets: most sessions have no other faults
	Floods         bool          // peers ping while the Conn ends or a session is replaced
	Accounts       int           // at a server of their own, which limits one of them
	TooLarge       bool          // the server sends too large a message in each session
	Eager          bool          // with Policy 1: replaces it by one that hardly waits
	Limits         bool          // there are events after which a limit ends a session
	MessageTimeout time.Duration // with Limits, or 0 for the default
	Calls          bool          // callbacks call more methods
	Single         bool          // the server allows one session and closes the others
	Apart          bool          // what else would happen at one instant does not; no plan is drawn with it
}

// The readers.
const (
	readPush = iota
	readRead
	readMessages
	readLate // nobody reads until the faults are over
	readers
)

// stream returns the random numbers of one actor.
func (p *Plan) stream(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(p.Seed, actor)) }

// upTo draws from [0, d).
func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// Draw returns the plan of a seed.
func Draw(seed uint64) *Plan { return drawWith(seed, "") }

// drawWith returns the plan of a seed with one of aboveNames above its Conn; empty: what is drawn.
func drawWith(seed uint64, above string) *Plan {
	p := &Plan{Seed: seed, above: above}
	r := p.stream(0)
	p.Length = 5*time.Second + upTo(r, 40*time.Second)
	p.Settings = settings(r)
	only := swarm(r)
	for i := range 8 + r.IntN(32) {
		p.Events = append(p.Events, Event{i, 1 + upTo(r, p.Length), only[r.IntN(len(only))]})
	}
	p.drawNetwork()
	p.drawRefusals()
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
	p.drawAbove()
	p.drawLogins()
	p.drawAdvised()
	p.drawTorn()
	p.drawForms()
	p.drawOdd()
	p.drawWide()
	p.drawSlowReader()
	p.drawParting()
	p.drawBlocked()
	p.drawLasting()
	p.drawDue()
	p.drawTurned()
	p.drawResets()
	p.drawFloods()
	p.drawAccounts()
	p.drawTooLarge()
	p.drawLimits()
	p.drawCalls()
	return p
}

// swarm draws the kinds of events that a history has, because a history of few kinds reaches
// states that a history of all kinds does not.
func swarm(r *rand.Rand) (kinds []string) {
	few := r.IntN(3) > 0
	for _, k := range allKinds {
		if few && r.IntN(3) > 0 {
			continue
		}
		for range k.weight {
			kinds = append(kinds, k.name)
		}
	}
	if len(kinds) == 0 {
		kinds = []string{"send", "reset", "rotate"}
	}
	return kinds
}

func settings(r *rand.Rand) (s Settings) {
	one := func(in int) bool { return r.IntN(in) == 0 }
	between := func(low, high time.Duration) time.Duration { return low + upTo(r, high-low) }
	if one(3) {
		s.Framing = 1 + r.IntN(2)
	}
	s.Compression = one(6)
	s.Reader = r.IntN(readers)
	if one(2) {
		s.InboxMessages = 1 + r.IntN(40)
	}
	if one(4) {
		s.InboxBytes = 100 + r.IntN(50_000)
	}
	if one(2) {
		s.InboxOverflow = r.IntN(4)
	}
	s.WhenDown = r.IntN(3)
	s.NoReceipts = s.WhenDown < 2 && one(5)
	if one(2) {
		s.OutboxMessages = 1 + r.IntN(20)
	}
	if one(3) {
		s.OutboxBytes = 1000 + r.IntN(200_000)
	}
	switch r.IntN(3) {
	case 0:
		s.OutboxAge = between(time.Second, 20*time.Second)
	case 1:
		s.OutboxAge = -1
	}
	s.OutboxOverflow = r.IntN(3)
	one(4) // for a setting that is gone, so that seeds keep their plans
	s.Keep = one(3)
	if one(2) {
		s.Silence = between(3*time.Second, 30*time.Second)
	}
	if one(5) {
		s.ProbeEvery = between(time.Second, 20*time.Second)
	}
	s.ProbeByMessage = one(3)
	if one(4) {
		s.KeepAlive = between(500*time.Millisecond, 10*time.Second)
	}
	if one(6) {
		s.Pace = 3 + r.IntN(20)
	}
	if one(6) {
		s.Stall = between(15*time.Second, 40*time.Second)
	}
	if one(4) {
		s.RotateAfter = between(3*time.Second, 60*time.Second)
	}
	if one(2) {
		s.Overlap = r.IntN(3)
	}
	if one(2) {
		s.Drain = between(time.Millisecond, 8*time.Second)
	}
	s.OneConnection = one(6)
	s.MarkRefetch = one(2)
	s.Resumable = one(5)
	if one(3) {
		s.OpenTimeout = between(time.Second, 10*time.Second)
	}
	switch r.IntN(6) {
	case 0:
		s.CloseTimeout = between(time.Millisecond, 3*time.Second)
	case 1:
		s.CloseTimeout = -1
	}
	if one(3) {
		s.WriteTimeout = between(time.Second, 10*time.Second)
	}
	s.Policy = r.IntN(policies)
	if one(4) {
		s.StableAfter = between(time.Millisecond, 20*time.Second)
	}
	if one(8) {
		s.StartSpread = between(time.Millisecond, 5*time.Second)
	}
	s.Gate = one(4)
	if one(5) {
		s.LoginFails = 2 + r.IntN(5)
	}
	if one(4) {
		s.LoginTakes = between(time.Millisecond, 3*time.Second)
	}
	s.Deliver = one(4)
	s.Tick = between(300*time.Millisecond, 1500*time.Millisecond)
	if one(4) {
		s.Lag = between(time.Millisecond, 800*time.Millisecond)
	}
	s.Ending = r.IntN(endings)
	s.Early = one(4)
	s.FaultsStay = one(2)
	return s.possible()
}

// possible takes back what excludes something else.
func (s Settings) possible() Settings {
	if s.WhenDown == 2 { // WhenDownKeep
		s.NoReceipts = false
	} else {
		s.Keep = false
	}
	if s.NoReceipts {
		s.OutboxMessages, s.OutboxBytes, s.OutboxAge, s.OutboxOverflow = 0, 0, 0, 0
	}
	if s.Reader == readPush {
		s.InboxMessages, s.InboxBytes, s.InboxOverflow = 0, 0, 0
	}
	if s.InboxOverflow == 3 { // InboxDiscard
		s.MarkRefetch = false
	}
	if s.OneConnection {
		s.Overlap = 2 // OverlapBreakFirst
	}
	if s.Framing != 0 { // only WebSockets have a ping
		s.Compression, s.ProbeByMessage, s.TLS = false, true, false
	}
	if s.NoReceipts || s.Lag == 0 {
		s.Torn = false
	}
	// A fault that lasts would cost it a hundred sessions in each second.
	s.Eager = s.Eager && s.Policy == 1 && !s.Lasts && !s.Turns && !s.TooLarge
	s.Spares = s.Spares && s.Resets
	s.Receives = s.Receives && s.Blocks
	s.Allowed = s.Allowed && s.RotateAfter > 0
	s.Expected = s.Expected && s.Stall > 0
	s.AwaitsReceipts = s.AwaitsReceipts && !s.NoReceipts
	s.HoldsMark = s.HoldsMark && s.MarkRefetch
	if s.TLS { // where nothing can be put between the frames of the server
		s.Forms = false
	}
	if !s.Forms {
		s.ReadLimit, s.Prefix = 0, 0
	}
	if s.Framing != 2 {
		s.Prefix = 0
	}
	if s.Forms && s.InboxOverflow == 2 { // with InboxDisconnect a message that is larger than the inbox ends each session
		s.InboxBytes = 0
	}
	if s.InboxOverflow == 2 && s.InboxMessages == 1 && s.ProbeByMessage {
		s.InboxMessages = 2 // the response to a probe may arrive together with a message
	}
	if s.Prefix == prefix2 && s.Framing == 2 && (s.ReadLimit == 0 || s.ReadLimit > mostPrefix2-1000) {
		s.TooLarge = false // no message is that large
	}
	if s.Framing != 0 || s.TLS { // a framed dialer follows nowhere, and the certificate has one name
		s.Advised = false
	}
	if s.OpenTimeout > 0 {
		s.OpenTimeout = max(s.OpenTimeout, 8*s.Lag+time.Second)
	}
	if s.Framing != 0 || s.TLS || s.ProbeByMessage { // only a pong says which ping it answers, and none can be put into TLS
		s.Late = 0
	}
	if s.Late > 0 {
		s.Stall, s.Pace, s.RotateAfter = 0, 0, 0
	}
	if s.Late > 0 || s.ProbeByMessage && s.ProbeEvery == 0 { // a late answer needs a limit, and so does a Probe without ProbeEvery
		s.Unlimited = false
	}
	if !s.Gate {
		s.Permits, s.Rivals = 0, 0
	}
	if s.Above == aboveBridge && (s.Reader == readPush || s.InboxOverflow == 3) { // a Bridge reads
		s.Above = aboveNothing
	}
	if s.Above == aboveBridge && s.InboxOverflow == 2 { // with InboxDisconnect a small inbox is full at each answer to Ask, for ever
		s.InboxMessages, s.InboxBytes = 0, 0
	}
	switch {
	case s.Logins == 0:
		s.LoginsPer = 0
	case s.LoginsPer == 0:
		s.LoginsPer = 30 * time.Second
	}
	if s.Tick == 0 {
		s.Tick = time.Second
	}
	return s
}

// readable gives a Bridge what it needs: it reads, and an inbox that discards hides what was lost.
func (s Settings) readable() Settings {
	if s.Above == aboveBridge && s.Reader == readPush {
		s.Reader = readRead
	}
	if s.Above == aboveBridge && s.InboxOverflow == 3 { // InboxDiscard
		s.InboxOverflow = 0
	}
	return s
}

// Only leaves the events with these indexes.
func (p *Plan) Only(indexes []int) *Plan {
	q := *p
	q.Events = slices.DeleteFunc(slices.Clone(p.Events), func(e Event) bool { return !slices.Contains(indexes, e.Index) })
	return &q
}

// Without gives settings their defaults.
func (p *Plan) Without(names []string) (*Plan, error) {
	q := *p
	q.without = slices.Clone(names)
	v := reflect.ValueOf(&q.Settings).Elem()
	for _, name := range names {
		f := v.FieldByName(name)
		if !f.IsValid() {
			return nil, fmt.Errorf("history: there is no setting %q", name)
		}
		f.SetZero()
	}
	q.Settings = q.Settings.possible()
	return &q, nil
}

// drawn returns the names of the settings that are not their defaults.
func (p *Plan) drawn() (names []string) {
	v := reflect.ValueOf(p.Settings)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}

func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %v\n", p.Seed, p.Length)
	v := reflect.ValueOf(p.Settings)
	for _, name := range p.drawn() {
		fmt.Fprintf(&b, "  %s: %v\n", name, v.FieldByName(name))
	}
	for _, e := range p.Events {
		fmt.Fprintf(&b, "  %3d %v %s\n", e.Index, e.At, e.Kind)
	}
	return b.String()
}
