package debug

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
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

// ranked is a Conn in the list of all.
type ranked struct {
	*watched
	trouble trouble
	key     int64
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
		x := &list[i]
		x.trouble, x.key = x.watched.trouble(now)
		n[x.trouble]++
	}
	slices.SortFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.trouble, b.trouble), cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id))
	})
	return list, countsInfo{len(list), n[troubleEnded], n[troubleAway], n[troubleFlapping], n[troubleNone], n[troubleClosed]}
}

// perPage is how many Conns one page shows.
const perPage = 100

// query is a request, parsed.
type query struct {
	text string // q
	show string // the name of a trouble; empty: all
	page int    // 0: the first
	conn uint64 // 0: the list
	json bool
	live bool
}

// parseQuery reads a request. A value that parseQuery does not know or cannot read has no effect.
func parseQuery(r *http.Request) *query {
	values := r.URL.Query()
	q := &query{text: clean(values.Get("q")), json: values.Has("json"), live: values.Has("live")}
	if show := values.Get("show"); slices.Contains(troubles[:], show) {
		q.show = show
	}
	q.page, _ = strconv.Atoi(values.Get("page"))
	q.conn, _ = strconv.ParseUint(values.Get("conn"), 10, 64)
	return q
}

// link returns the query of the page n of the same list, for the Conns in the condition show, "" for all.
func (q *query) link(show string, n int) string {
	values := url.Values{}
	if q.text != "" {
		values.Set("q", q.text)
	}
	if show != "" {
		values.Set("show", show)
	}
	if n > 1 {
		values.Set("page", strconv.Itoa(n))
	}
	return "?" + values.Encode()
}

// finds reports whether q asks for w.
func (q *query) finds(w ranked) bool {
	if q.conn != 0 {
		return w.id == q.conn
	}
	return (q.show == "" || q.show == w.trouble.String()) && strings.Contains(w.text, strings.ToLower(q.text))
}
