package debug

import (
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"slices"
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
var policy = fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; connect-src 'self'; img-src data:; "+
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'", hash(pageCSS), hash(pageJS))

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// icon is a drawing without a request of its own.
const icon = `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><circle cx='8' cy='8' r='6' fill='%232ea35a'/></svg>`

// whole renders pages, with durations as they are at that moment.
var whole = template.Must(template.New("").Funcs(template.FuncMap{
	"style":  func() template.HTML { return template.HTML("<style>" + pageCSS + "</style>") },
	"script": func() template.HTML { return template.HTML("<script>" + pageJS + "</script>") },
	"icon":   func() template.URL { return icon },
	"bytes":  bytes,
	"number": number,
	"breaks": breaks,
	"clock":  func(t time.Time) string { return t.Format("15:04:05.000") },
	"rfc":    func(t time.Time) string { return t.Format(time.RFC3339Nano) },
	"until":  func(t time.Time) template.HTML { return running("until", t, "in "+seconds(time.Until(t)).String()) },
	"since":  func(t time.Time) template.HTML { return running("since", t, seconds(time.Since(t)).String()) },
	"for":    func(d seconds) template.HTML { return running("since", ago(d), d.String()) },
}).Parse(pageHTML))

// parts renders parts for live updates. It leaves durations to the script, so that a part in
// which nothing has happened stays the same.
var parts = template.Must(whole.Clone()).Funcs(template.FuncMap{
	"until": func(t time.Time) template.HTML { return running("until", t, "") },
	"since": func(t time.Time) template.HTML { return running("since", t, "") },
	"for":   func(d seconds) template.HTML { return running("since", ago(d), "") },
})

// ago returns the time that is d ago, to a second, so that it stays the same.
func ago(d seconds) time.Time { return time.Now().Add(-time.Duration(d)).Round(time.Second) }

// running returns an element in which the script shows the time until t, or since t.
func running(what string, t time.Time, text string) template.HTML {
	return template.HTML(fmt.Sprintf(`<span data-%s="%d">%s</span>`, what, t.UnixMilli(), text))
}

// breaks returns a text that a browser may break after each slash.
func breaks(s string) template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(s), "/", "/<wbr>"))
}

// Badge returns the class of the badge that shows the state.
func (c *connInfo) Badge() string {
	switch {
	case c.Condition == "ended", c.State == "waiting" && c.Verdict != "retry":
		return "away"
	case c.State == "ready", c.State == "closed":
		return c.State
	}
	return "waiting"
}

// view is what the templates render.
type view struct {
	*Snapshot
	Boot, Heading string
	Text, Show    string      // of the query
	Server, Cause string      // likewise
	JSON          string      // the query for the same as JSON
	Lines         []aboutInfo // those of About that are shown
	More          int         // how many Conns those have that are not shown
	MoreQuery     string      // the query that finds these
	OnlyMore      bool        // q is that query
	Filter        *filter     // nil: none
	Chips         []chip
	First, Last   int    // of the Conns that were found
	Before, After string // queries; empty: there is no such page

	Detail bool      // one Conn is asked for
	One    *connInfo // nil: there is no such Conn
}

// filter is the line of About that the query has chosen.
type filter struct {
	Text string
	Off  string // the query without it
}

// chip is a link to the Conns in one condition, with their number.
type chip struct {
	N                  int
	Label, Link, Class string
	Current            bool
}

// view returns what q asks for.
func (p *Page) view(q *query, now time.Time) *view {
	s := p.snapshot(q, now)
	v := &view{Snapshot: s, Boot: p.boot, Heading: s.Title, Text: q.text, Show: q.show, Server: q.server, Cause: q.cause, OnlyMore: q.more, Detail: q.conn != 0}
	if v.Detail {
		v.JSON = fmt.Sprintf("?conn=%d&json", q.conn)
		for i := range s.Conns {
			v.One, v.Heading = &s.Conns[i], s.Conns[i].Name+" - "+s.Title
			slices.Reverse(v.One.Sessions) // the newest first
			slices.Reverse(v.One.Events)
		}
		return v
	}
	v.JSON = strings.Replace(q.link(s.Page)+"&json", "?&", "?", 1)
	v.Lines = s.About[:min(len(s.About), aboutShown)]
	for _, line := range s.About[len(v.Lines):] {
		v.More += line.Conns
	}
	v.MoreQuery = (&query{more: true}).link(1)
	v.Filter, v.Chips = q.filter(s.About), q.chips(s.Counts)
	v.First = (s.Page-1)*perPage + 1
	v.Last = v.First + len(s.Conns) - 1
	if s.Page > 1 {
		v.Before = q.link(s.Page - 1)
	}
	if s.Page < s.Pages {
		v.After = q.link(s.Page + 1)
	}
	return v
}

// chips returns the links to the conditions that there are, and to the one that is asked for.
func (q *query) chips(n countsInfo) (chips []chip) {
	if n.All == 0 {
		return nil
	}
	whole := q.server == "" && q.cause == "" && !q.more // no line is chosen
	chips = []chip{{n.All, "all", q.only(""), "", q.show == "" && whole}}
	for t, n := range []int{n.Ended, n.Away, n.Flapping, n.Ready, n.Closed} {
		x := chip{n, troubles[t], q.only(troubles[t]), troubles[t], q.show == troubles[t] && whole}
		if n == 0 && !x.Current {
			continue
		}
		chips = append(chips, x)
	}
	return chips
}

// filter returns the line that q has chosen, or nil.
func (q *query) filter(lines []aboutInfo) *filter {
	if q.more {
		return &filter{"those for other reasons", q.only("")}
	}
	if q.server == "" && q.cause == "" {
		return nil
	}
	f := &filter{Text: strings.TrimSpace(q.cause + " " + q.server), Off: q.only("")}
	for _, line := range lines {
		if line.Condition == q.show && line.Server == q.server && line.Cause == q.cause {
			f.Text = line.Text
		}
	}
	return f
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
	if p.token.isLink(r) {
		p.token.serveCookie(w, r)
		return
	}
	switch q := parseQuery(r); {
	case q.live:
		p.serveStream(w, r, q)
	case q.json:
		p.serveJSON(w, q)
	default:
		p.serveHTML(w, q)
	}
}

func (p *Page) serveJSON(w http.ResponseWriter, q *query) {
	s := p.snapshot(q, time.Now())
	if q.conn != 0 && s.Found == 0 {
		http.Error(w, "there is no such connection", http.StatusNotFound)
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
	render(w, whole, "page", v)
}

// render writes a template. An error of w means that the client is gone. The templates cause no error,
// as the tests check.
func render(w io.Writer, t *template.Template, name string, data any) {
	_ = t.ExecuteTemplate(w, name, data)
}
