package debug

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redial-go/redial/reconnect/budget"
)

// trouble is the condition of a Conn, the worst first.
type trouble uint8

const (
	troubleEnded    trouble = iota // it has ended by itself: nothing dials any more
	troubleAway                    // no session is ready
	troubleFlapping                // a session is ready, but several were lost lately
	troubleNone                    // a session is ready
	troubleClosed                  // the program has closed it
)

var troubles = [...]string{"ended", "away", "flapping", "ready", "closed"}

func (t trouble) String() string { return troubles[t] }

// countsInfo is the record counts of the JSON.
type countsInfo struct {
	All      int `json:"all"`
	Ended    int `json:"ended"`
	Away     int `json:"away"`
	Flapping int `json:"flapping"`
	Ready    int `json:"ready"`
	Closed   int `json:"closed"`
}

// ranked is a Conn in the list of all, as of one moment.
type ranked struct {
	*watched
	trouble trouble
	atGate  bool            // it waits at the gate
	key     int64           // orders the Conns with the same trouble
	next    int64           // when its next dial begins; 0: it does not wait for that
	since   int64           // since when it has had no session; 0: it has one
	last    *causeInfo      // why the last dial failed or the last session ended; nil: none did
	outlook *budget.Outlook // of Status
	probe   *probeInfo      // the record of outlook, or of that of another Conn at the same gate
	cause   string          // the one by which it is sorted: see about
}

// ranked returns all Conns, the worst first: those that have ended by themselves, the last
// first; those without a session, the longest first; those that are flapping, the most losses
// first; those that are ready, the last failure first; and those that were closed.
func (p *Page) ranked(now time.Time) ([]ranked, countsInfo) {
	p.mu.Lock()
	list := make([]ranked, 0, len(p.conns))
	for _, w := range p.conns {
		list = append(list, ranked{watched: w})
	}
	p.mu.Unlock()
	var n [len(troubles)]int
	for i := range list {
		list[i] = list[i].watched.ranked(now)
		n[list[i].trouble]++
	}
	p.sortOut(list, now)
	slices.SortFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.trouble, b.trouble), cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id))
	})
	return list, countsInfo{len(list), n[troubleEnded], n[troubleAway], n[troubleFlapping], n[troubleNone], n[troubleClosed]}
}

// perPage is how many Conns one page shows.
const perPage = 100

// query is a request, parsed.
type query struct {
	text   string // q
	show   string // the name of a trouble; empty: all
	server string // of aboutInfo; empty: all
	cause  string // likewise
	more   bool   // only those whose line is not shown
	page   int    // 0: the first
	conn   uint64 // 0: the list
	json   bool
	live   bool
}

// parseQuery reads a request. A value that parseQuery does not know or cannot read has no effect.
func parseQuery(r *http.Request) *query {
	values := r.URL.Query()
	q := &query{
		text: clean(values.Get("q")), server: clean(values.Get("server")), cause: clean(values.Get("cause")),
		more: values.Has("more"), json: values.Has("json"), live: values.Has("live"),
	}
	if show := values.Get("show"); slices.Contains(troubles[:], show) {
		q.show = show
	}
	q.page, _ = strconv.Atoi(values.Get("page"))
	q.conn, _ = strconv.ParseUint(values.Get("conn"), 10, 64)
	return q
}

// link returns the query of the page n of the same list.
func (q *query) link(n int) string {
	values := url.Values{}
	for name, value := range map[string]string{"q": q.text, "show": q.show, "server": q.server, "cause": q.cause} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.more {
		values.Set("more", "1")
	}
	if n > 1 {
		values.Set("page", strconv.Itoa(n))
	}
	return "?" + values.Encode()
}

// only returns the query for the Conns in the condition show, "" for all, with the same text.
func (q *query) only(show string) string { return (&query{text: q.text, show: show}).link(1) }

// finds reports whether q asks for w.
func (q *query) finds(w ranked) bool {
	if q.conn != 0 {
		return w.id == q.conn
	}
	return (q.show == "" || q.show == w.trouble.String()) && (q.server == "" || q.server == w.server) &&
		(q.cause == "" || q.cause == w.cause) && w.contains(strings.ToLower(q.text))
}

// contains reports whether the Conn has a text, in lower case: in its name, its endpoint, its state or its last cause.
func (x *ranked) contains(text string) bool {
	if strings.Contains(x.text, text) || x.atGate && strings.Contains(atGate, text) {
		return true
	}
	if p := x.probe; p != nil && strings.Contains(strings.ToLower(p.Text), text) {
		return true
	}
	c := x.last
	return c != nil && (strings.Contains(c.Reason, text) || strings.Contains(strings.ToLower(c.Text), text))
}

const atGate = "at the gate"
