package debug

import (
	"net/http"
	"net/url"
	"strconv"
)

// query is a request, parsed.
type query struct {
	text string  // q
	show trouble // show, if only
	only bool
	page int    // 0: the first
	conn uint64 // 0: the list
	json bool
	live bool
}

// parseQuery reads a request. A value that parseQuery does not know or cannot read has no effect.
func parseQuery(r *http.Request) *query {
	values := r.URL.Query()
	q := &query{text: clean(values.Get("q")), json: values.Has("json"), live: values.Has("live")}
	q.show, q.only = parseTrouble(values.Get("show"))
	q.page, _ = strconv.Atoi(values.Get("page"))
	q.conn, _ = strconv.ParseUint(values.Get("conn"), 10, 64)
	return q
}

// link returns the query of the page n of the same list, for those that are in the condition
// show, "" for all.
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

// shown returns the condition that q asks for, "" for all.
func (q *query) shown() string {
	if q.only {
		return q.show.String()
	}
	return ""
}
