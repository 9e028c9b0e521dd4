package subscription_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// venue is a server of subscriptions, such as an exchange with market data. Its method Serve is the
// handler of a conntest.Server. A venue reads a request from each message, answers it, and sends what a
// test publishes to the connections that are subscribed. It has a policeman, which closes connections
// that send too much, and faults: answers that are lost, late, foreign or wrong. Any goroutine may call
// its methods.
//
//	v := newVenue(&venueOptions{Most: 5, Per: time.Second})
//	s := conntest.NewServer(n, "feed.test:80", v.Serve)
//	defer s.Close()
//	v.Next(venueFault{Lost: true}) // the first request is not answered
//
// A connection whose URL has a query such as ?keys=a,b is subscribed to these keys from its
// beginning.
type venue struct {
	o venueOptions

	mu      sync.Mutex // guards what follows; never held across a wait
	clients []*client
	script  []venueFault
	stats   venueStats
}

// venueOptions are the options of a venue. Nil and the zero value mean: no policeman, every
// key is known, and one answer for each request.
type venueOptions struct {
	// Most is how many messages a connection may send in any interval of the length Per.
	// An interval includes its beginning and not its end. The message that is too many
	// is not worked off: the connection is closed with 1008. Pings do not count. Default: no
	// limit.
	Most int
	Per  time.Duration

	// Bad reports whether a key is unknown, so that a subscription to it is refused, with
	// all other keys of its request. It must not call the venue. Default: none is.
	Bad func(key string) bool

	// Partial refuses only the bad keys of a request, and names them in Message.Refused.
	Partial bool

	// KeyByKey answers with a message for each key, without the id. A bad key is refused by
	// itself.
	KeyByKey bool

	// Bare leaves id, operation and keys out of the answers, so that only their order tells to
	// what they belong.
	Bare bool

	// Mute gives no answers at all.
	Mute bool

	// Strict refuses to subscribe to what the connection has, and to unsubscribe from what it
	// has not: the error is "redundant". One error for several keys is that of a bad key, if
	// there is one. Otherwise these are agreed to. Stats.Redundant counts them anyway.
	Strict bool

	// Tags gives each subscription a name, which no other connection has: Message.Tag. It
	// is for requests of one key, or for KeyByKey. A request to unsubscribe may have the tag in
	// place of the key.
	Tags bool

	// Fault returns the fault for a request. It is asked when the faults of Next are used up.
	// It must not call the venue. Default: none.
	Fault func(r venueRequest) venueFault
}

// venueRequest is a message to a venue, as JSON.
type venueRequest struct {
	Op   string   `json:"op"` // "subscribe" or "unsubscribe"; any other message is ignored
	ID   string   `json:"id,omitempty"`
	Keys []string `json:"keys,omitempty"`

	client int // number of the connection
}

// venueMessage is a message of a venue, as JSON: an answer, or data.
type venueMessage struct {
	Op      string   `json:"op,omitempty"` // "subscribe" or "unsubscribe" in an answer, "ended" if the venue ends a subscription, "" in data
	ID      string   `json:"id,omitempty"` // of the request
	Keys    []string `json:"keys,omitempty"`
	Error   string   `json:"error,omitempty"`   // why it was refused
	Refused []string `json:"refused,omitempty"` // with Partial: those of Keys
	Tag     string   `json:"tag,omitempty"`     // with Tags
	Data    string   `json:"data,omitempty"`    // what was published to the one key
	Answer  bool     `json:"answer,omitempty"`  // it is an answer
}

// venueFault is what a venue does wrong with one request. The zero value is none.
type venueFault struct {
	Ignored bool          // the request is neither worked off nor answered
	Lost    bool          // it is worked off and not answered
	Late    time.Duration // it is worked off at once and answered so much later
	Slow    time.Duration // it is worked off and answered so much later, while others overtake it
	Err     string        // it is not worked off and is refused for this reason
	Foreign string        // before the answer comes one that has this id, and agrees
	Twice   bool          // it is answered twice
}

// venueStats are the counts of a venue.
type venueStats struct {
	Connections int // that were accepted
	Requests    int // that were read, those that were one too many included; other messages do not count
	Policed     int // connections that the policeman has closed
	Redundant   int // keys that were subscribed twice, or unsubscribed without need
	Peak        int // the most keys of one request
}

// newVenue returns a venue.
func newVenue(o *venueOptions) *venue {
	v := new(venue)
	if o != nil {
		v.o = *o
	}
	return v
}

// client is one connection of a venue, whose mu guards the fields.
type client struct {
	number int               // counts the connections, from 1 on
	held   map[string]string // to the tag
	queue  [][]byte          // to be written
	more   chan struct{}     // holds one wake-up for the writer
	gone   bool
	seen   []time.Time // when the last messages came, Most of them at most
}

// Serve serves one connection until that or ctx ends.
func (v *venue) Serve(ctx context.Context, c *websocket.Conn, r *http.Request) {
	ctx, cancel := context.WithCancel(ctx)
	p := &client{held: map[string]string{}, more: make(chan struct{}, 1)}
	var writer sync.WaitGroup
	writer.Go(func() { v.write(ctx, c, p) }) // waited for below
	v.mu.Lock()
	v.stats.Connections++
	p.number = v.stats.Connections
	v.clients = append(v.clients, p)
	for _, key := range urlKeys(r) {
		v.subscribe(p, key)
	}
	v.mu.Unlock()
	err := v.read(ctx, c, p)
	v.mu.Lock()
	p.gone = true
	v.clients = slices.DeleteFunc(v.clients, func(other *client) bool { return other == p })
	v.mu.Unlock()
	if errors.Is(err, errPoliced) {
		c.Close(websocket.StatusPolicyViolation, "too many messages")
	}
	cancel()
	writer.Wait()
}

var errPoliced = errors.New("too many messages")

// read works off the messages of one connection until it ends.
func (v *venue) read(ctx context.Context, c *websocket.Conn, p *client) error {
	c.SetReadLimit(-1)
	for {
		_, data, err := c.Read(ctx)
		if err != nil {
			return err
		}
		r, ok := readRequest(data)
		v.mu.Lock()
		if ok {
			v.stats.Requests++
		}
		policed := v.police(p, time.Now())
		if ok && !policed {
			v.handle(p, r)
		}
		v.mu.Unlock()
		if policed {
			return errPoliced
		}
	}
}

// write writes what is queued until ctx ends.
func (v *venue) write(ctx context.Context, c *websocket.Conn, p *client) {
	for {
		v.mu.Lock()
		queue := p.queue
		p.queue = nil
		v.mu.Unlock()
		for _, data := range queue {
			if err := c.Write(ctx, websocket.MessageText, data); err != nil {
				return
			}
		}
		select {
		case <-p.more:
		case <-ctx.Done():
			return
		}
	}
}

// readRequest reads a request. False means that the message is none.
func readRequest(data []byte) (r venueRequest, ok bool) {
	if err := json.Unmarshal(data, &r); err != nil {
		return venueRequest{}, false
	}
	return r, (r.Op == "subscribe" || r.Op == "unsubscribe") && len(r.Keys) > 0
}

// police counts a message, and reports whether it is one too many.
func (v *venue) police(p *client, now time.Time) bool {
	if v.o.Most <= 0 {
		return false
	}
	if len(p.seen) == v.o.Most && now.Sub(p.seen[0]) < v.o.Per {
		v.stats.Policed++
		return true
	}
	if p.seen = append(p.seen, now); len(p.seen) > v.o.Most {
		p.seen = p.seen[1:]
	}
	return false
}

// handle works off a request, with the next fault.
func (v *venue) handle(p *client, r venueRequest) {
	r.client = p.number
	var f venueFault
	if len(v.script) > 0 {
		f, v.script = v.script[0], v.script[1:]
	} else if v.o.Fault != nil {
		f = v.o.Fault(r)
	}
	v.stats.Peak = max(v.stats.Peak, len(r.Keys))
	switch {
	case f.Ignored:
	case f.Slow > 0:
		time.AfterFunc(f.Slow, func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			if !p.gone {
				v.reply(p, r, f)
			}
		})
	default:
		v.reply(p, r, f)
	}
}

// send queues messages.
func (p *client) send(messages ...venueMessage) {
	if p.gone {
		return
	}
	for _, m := range messages {
		data, err := json.Marshal(m)
		if err != nil {
			panic("venue: " + err.Error()) // cannot be: there are strings in it
		}
		p.queue = append(p.queue, data)
	}
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// Next sets the faults of the next requests, of whatever connection: each gets one of them in
// turn. After them Options.Fault decides. Faults that were set before are forgotten.
func (v *venue) Next(faults ...venueFault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.script = slices.Clone(faults)
}

// Publish sends data to every connection that is subscribed to the key, and returns how many
// these are.
func (v *venue) Publish(key, data string) (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.clients {
		if tag, ok := p.held[key]; ok {
			p.send(venueMessage{Keys: []string{key}, Tag: tag, Data: data})
			n++
		}
	}
	return n
}

// End ends the subscriptions to a key, by a message whose Op is "ended".
func (v *venue) End(key, reason string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.clients {
		if _, ok := p.held[key]; ok {
			delete(p.held, key)
			p.send(venueMessage{Answer: true, Op: "ended", Keys: []string{key}, Error: reason})
		}
	}
}

// Held returns the keys of each connection, sorted; the oldest connection comes first.
func (v *venue) Held() [][]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := [][]string{}
	for _, p := range v.clients {
		keys := []string{}
		for key := range p.held {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		all = append(all, keys)
	}
	return all
}

// Stats returns the counts.
func (v *venue) Stats() venueStats {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.stats
}

// Door is an answer to a handshake: 400 if the URL has a bad key, and else the answer of accept.
func (v *venue) Door(accept http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if v.o.Bad != nil && slices.ContainsFunc(urlKeys(r), v.o.Bad) {
			http.Error(w, "a key is unknown", http.StatusBadRequest)
			return
		}
		accept(w, r)
	}
}

// urlKeys returns the keys in the URL of a handshake.
func urlKeys(r *http.Request) []string {
	if list := r.URL.Query().Get("keys"); list != "" {
		return strings.Split(list, ",")
	}
	return nil
}
