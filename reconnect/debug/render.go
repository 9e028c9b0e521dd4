package debug

import (
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
)

// policy is the Content-Security-Policy: nothing but the style and the script of this package,
// which are in the page and known by their hashes, and what they fetch from this Page.
var policy = fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; connect-src 'self'; "+
	"img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'", hash(pageCSS), hash(pageJS))

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// icon is a drawing without a request of its own.
const icon = `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>` +
	`<circle cx='8' cy='8' r='6' fill='%232ea35a'/></svg>`

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"style":  func() template.HTML { return template.HTML("<style>" + pageCSS + "</style>") },
	"script": func() template.HTML { return template.HTML("<script>" + pageJS + "</script>") },
	"icon":   func() template.URL { return icon },
	"bytes":  bytes,
	"number": number,
	"breaks": breaks,
	"clock":  func(t time.Time) string { return t.Format("15:04:05.000") },
	"rfc":    func(t time.Time) string { return t.Format(time.RFC3339Nano) },
	"since":  func(t time.Time) seconds { return seconds(time.Since(t)) },
	"until":  until,
}).Parse(pageHTML))

// until returns the time until t.
func until(t time.Time) string {
	if d := time.Until(t); d > 0 {
		return "in " + seconds(d).String()
	}
	return "now"
}

// breaks returns a text that a browser may break after each slash.
func breaks(s string) template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(s), "/", "/<wbr>"))
}

// Badge returns the class of the badge that shows the state.
func (c *connInfo) Badge() string {
	switch {
	case c.Condition == "ended", c.State == "waiting" && (c.Verdict == "slow" || c.Verdict == "stop"):
		return "away"
	case c.State == "ready", c.State == "closed":
		return c.State
	}
	return "waiting"
}

// Class returns the class of the session in the row of its Conn.
func (s *sessionInfo) Class() string {
	switch {
	case s.Live && s.Up == 0:
		return "opening"
	case s.Up == 0:
		return "failed"
	case s.Live:
		return "now"
	case s.Planned:
		return "planned"
	}
	return "lost"
}

// query is the query of a request.
type query struct {
	show string // a condition, or the line of a connInfo; "": all
	one  bool   // one Conn is asked for, not the list
	conn uint64 // its ID, or 0 if no Conn can have the ID in the query
	all  bool
	json bool
}

// parseQuery returns the query of r, without what it does not know.
func parseQuery(r *http.Request) *query {
	values := r.URL.Query()
	q := &query{
		show: values.Get("show"), one: values.Has("conn"), all: values.Has("all"), json: values.Has("json"),
	}
	if id, err := strconv.ParseUint(values.Get("conn"), 10, 64); err == nil {
		q.conn = id
	}
	return q
}

// link returns q with another word, as a link. It has nothing else of the request's query, such as a token that
// the Page does not require.
func (q *query) link(word string) string {
	var words []string
	if q.show != "" {
		words = append(words, "show="+url.QueryEscape(q.show))
	}
	if q.one {
		words = append(words, "conn="+strconv.FormatUint(q.conn, 10))
	}
	if q.all {
		words = append(words, "all")
	}
	return "?" + strings.Join(append(words, word), "&")
}

// finds reports whether q asks for c.
func (q *query) finds(c *connInfo) bool {
	if q.one {
		return c.ID == q.conn
	}
	return q.show == "" || q.show == c.Condition || q.show == c.line
}

// view is what the templates render.
type view struct {
	*Snapshot
	Heading   string
	Show      string    // of the query
	Hidden    int       // Conns that were found and are not shown
	All, JSON string    // the queries for all Conns, or "" if it is this one, and for JSON
	Detail    bool      // one Conn is asked for
	Boot      string    // differs between two Pages, whose Conns have the same IDs
	One       *connInfo // or nil if there is no such Conn
}

// view returns what q asks for.
func (p *Page) view(q *query, now time.Time) *view {
	s := p.snapshot(q, now)
	v := &view{
		Snapshot: s, Heading: s.Title, Show: q.show, Hidden: s.Found - len(s.Conns),
		JSON: q.link("json"), Detail: q.one, Boot: p.boot,
	}
	if !q.all {
		v.All = q.link("all")
	}
	if v.Detail && s.Found > 0 {
		v.One, v.Heading = &s.Conns[0], s.Conns[0].Name+" - "+s.Title
		slices.Reverse(v.One.Sessions) // the newest first
		slices.Reverse(v.One.Events)
	}
	return v
}

// ServeHTTP implements [http.Handler].
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if status, why := p.refused(r); status != 0 {
		switch status {
		case http.StatusMethodNotAllowed:
			w.Header().Set("Allow", "GET, HEAD")
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		http.Error(w, why, status)
		return
	}
	switch q := parseQuery(r); {
	case p.token.isLink(r):
		p.token.serveCookie(w, r)
	case q.json:
		p.serveJSON(w, q)
	default:
		p.serveHTML(w, q)
	}
}

func (p *Page) serveJSON(w http.ResponseWriter, q *query) {
	s := p.snapshot(q, time.Now())
	if q.one && s.Found == 0 {
		http.Error(w, "there is no such connection: ?json has the list", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(s) // an error means that the client is gone
}

func (p *Page) serveHTML(w http.ResponseWriter, q *query) {
	v := p.view(q, time.Now())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if v.Detail && v.One == nil {
		w.WriteHeader(http.StatusNotFound)
	}
	_ = pages.ExecuteTemplate(w, "page", v) // an error means that the client is gone, as the tests check
}
