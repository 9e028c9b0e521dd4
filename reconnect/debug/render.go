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
	"bar":    bar.SVG,
	"bytes":  bytes,
	"badge":  func(r *row) string { return badge(&r.connInfo) },
	"number": numberOf,
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

// numberOf is [number] for templates.
func numberOf(n any) string {
	switch n := n.(type) {
	case int:
		return number(n)
	case uint64:
		return number(n)
	}
	return fmt.Sprint(n)
}

// badge returns the class of the badge that shows the state.
func badge(c *connInfo) string {
	switch {
	case c.Condition == "ended":
		return "away"
	case c.State == "ready":
		return "ready"
	case c.State == "waiting" && c.Verdict != "retry":
		return "away"
	case c.State == "closed":
		return "closed"
	}
	return "waiting"
}

// view is what the templates render.
type view struct {
	Title, Name, Heading string
	Boot                 string
	Now                  time.Time
	Streams              bool // pages are updated
	Query                struct{ Text, Show string }
	JSON                 string
	Counts               countsInfo
	Chips                []chip
	Gates                []*gateView
	Breakers             []breakerInfo
	Groups               []groupInfo

	Rows                            []*row
	Found, First, Last, Page, Pages int
	Before, After                   string // queries; empty: there is no such page

	Detail bool
	One    *row // nil: there is no such Conn
}

// row is a Conn as the templates render it.
type row struct {
	connInfo
	Bar    bar
	Newest []sessionInfo // the newest first, as Latest
	Latest []eventInfo
}

// gateView is a gate as the templates render it.
type gateView struct {
	Name  string
	Lines []gateInfo // the worst
	More  int        // how many more there are
	Bad   bool       // a host is down
}

// gateLinesShown is how many lines of one gate the page has. JSON has more.
const gateLinesShown = 6

// gateViews returns gates by their lines.
func gateViews(lines []gateInfo) (views []*gateView) {
	byName := map[string]*gateView{}
	for _, line := range lines {
		v := byName[line.Name]
		if v == nil {
			v = &gateView{Name: line.Name}
			byName[line.Name], views = v, append(views, v)
		}
		switch {
		case line.None:
		case len(v.Lines) < gateLinesShown:
			v.Lines = append(v.Lines, line)
		default:
			v.More++
		}
		v.More += line.More
		v.Bad = v.Bad || line.Down
	}
	return views
}

// chip is a link to the Conns in one condition, with their number.
type chip struct {
	N           int
	Label, Link string
	Class       string
	Current     bool
}

// view returns what q asks for.
func (p *Page) view(q *query, now time.Time) *view {
	v := &view{Title: p.o.Title, Heading: p.o.Title, Boot: p.boot, Now: now, Streams: p.o.Streams > 0, Detail: q.conn != 0}
	if v.Detail {
		v.JSON = fmt.Sprintf("?conn=%d&json", q.conn)
		if w := p.conn(q.conn); w != nil {
			v.One = newRow(w, now, true)
			v.Name = v.One.Name
			v.Heading = v.One.Name + " - " + p.o.Title
		}
		return v
	}
	f := p.find(q, now)
	v.JSON = q.link(q.shown(), f.page)
	if v.JSON += "&json"; v.JSON == "?&json" {
		v.JSON = "?json"
	}
	v.Query.Text, v.Query.Show, v.Counts, v.Chips = q.text, q.shown(), f.counts, chips(q, f.counts)
	var lines []gateInfo
	lines, v.Breakers, v.Groups = p.others(now)
	v.Gates = gateViews(lines)
	v.Found, v.First, v.Last, v.Page, v.Pages = f.total, f.from+1, f.from+len(f.list), f.page, f.pages
	for _, w := range f.list {
		v.Rows = append(v.Rows, newRow(w.watched, now, false))
	}
	if f.page > 1 {
		v.Before = q.link(q.shown(), f.page-1)
	}
	if f.page < f.pages {
		v.After = q.link(q.shown(), f.page+1)
	}
	return v
}

// newRow returns w as the templates render it.
func newRow(w *watched, now time.Time, events bool) *row {
	r := &row{connInfo: w.snapshot(now, events)}
	w.mu.Lock()
	sessions := w.sessions.all()
	w.mu.Unlock()
	r.Bar.sessions = make([]sessionInfo, len(sessions))
	for i := range sessions {
		r.Bar.sessions[i] = sessions[i].public(now)
	}
	if !r.AwaySince.IsZero() {
		r.Bar.away = seconds(max(now.Sub(r.AwaySince), 1))
	}
	if events {
		r.Newest, r.Latest = slices.Clone(r.Sessions), slices.Clone(r.Events)
		slices.Reverse(r.Newest)
		slices.Reverse(r.Latest)
	}
	return r
}

// chips returns the links at the top.
func chips(q *query, c countsInfo) []chip {
	list := []chip{{N: c.All, Label: "all", Link: q.link("", 1), Current: !q.only}}
	for t, n := range []int{c.Ended, c.Away, c.Flapping, c.Ready, c.Closed} {
		name := trouble(t).String()
		x := chip{N: n, Label: name, Class: name, Link: q.link(name, 1), Current: q.only && q.show == trouble(t)}
		if n == 0 {
			x.Class = "zero"
		}
		list = append(list, x)
	}
	return list
}

// ServeHTTP implements [http.Handler].
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if status, why := p.refused(r); status != 0 {
		if status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", "GET, HEAD")
		}
		http.Error(w, why, status)
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
	s := p.snapshot(q)
	if s == nil {
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
