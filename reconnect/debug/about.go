package debug

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"weak"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// aboutInfo is the record about of the JSON: Conns that have the same trouble for the same reason.
type aboutInfo struct {
	Conns     int       `json:"conns"`
	Condition string    `json:"condition"`
	Server    string    `json:"server,omitempty"`
	Cause     string    `json:"cause"`
	Text      string    `json:"text"`
	Error     string    `json:"error,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Next      time.Time `json:"next,omitzero"`
	By        string    `json:"by,omitempty"`
	Query     string    `json:"query"`
}

// AtGate reports whether the line is about Conns at a gate.
func (l aboutInfo) AtGate() bool { return isGate(l.Cause) }

// about is what the Conns of one line have in common.
type about struct {
	trouble trouble
	server  string
	cause   string // see causeInfo.word; or one of the following
}

const (
	causeGate    = "gate"    // it waits at the gate; see gateCause
	causeConnect = "connect" // no dial has failed yet
)

// aboutShown is how many lines stand above the rows.
const aboutShown = 8

// sortOut gives each Conn its cause. If all Conns that wait at a gate for a server wait at the same gate, another Conn
// to that server gets their cause too, if its last dial has failed in the same way as the last probe: it was the probe.
func (p *Page) sortOut(list []ranked, now time.Time) {
	type place struct {
		server string
		gate   *budget.Gate
	}
	probes := map[place]*probeInfo{}
	lone := map[string]*probeInfo{} // by the server, if those for it wait at one gate; nil: at several
	causes := map[string]string{}   // of lone
	for i := range list {
		x := &list[i]
		x.cause = x.ownCause()
		if x.cause != causeGate || x.outlook == nil {
			continue
		}
		x.cause = p.gateCause(x.outlook.Gate)
		at := place{x.server, x.outlook.Gate}
		if probes[at] == nil {
			_, several := lone[x.server]
			probes[at] = p.probe(x.outlook, now)
			if lone[x.server] = probes[at]; several {
				lone[x.server] = nil
			}
			causes[x.server] = x.cause
		}
		x.probe = probes[at]
	}
	for i := range list {
		x := &list[i]
		if probe := lone[x.server]; probe != nil && x.trouble == troubleAway && x.cause == probe.word {
			x.cause = causes[x.server]
		}
	}
}

// gateCause returns the cause of the Conns that wait at g: causeGate, and a number if g is not the first gate that the
// Page has seen. A new gate gets the smallest number that no other gate has. Gates that are gone are forgotten.
func (p *Page) gateCause(g *budget.Gate) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := weak.Make(g)
	n := p.gateNumbers[key]
	if n == 0 {
		maps.DeleteFunc(p.gateNumbers, func(k weak.Pointer[budget.Gate], _ int) bool { return k.Value() == nil })
		taken := slices.Collect(maps.Values(p.gateNumbers))
		for n = 1; slices.Contains(taken, n); n++ {
		}
		p.gateNumbers[key] = n
	}
	if n == 1 {
		return causeGate
	}
	return causeGate + strconv.Itoa(n)
}

// isGate reports whether a cause is that of a gate.
func isGate(cause string) bool { return strings.HasPrefix(cause, causeGate) }

// ownCause returns the cause of a Conn, without a look at other Conns; empty: the Conn has no trouble.
func (x *ranked) ownCause() string {
	switch {
	case x.trouble == troubleNone || x.trouble == troubleClosed:
		return ""
	case x.trouble == troubleAway && x.atGate:
		return causeGate
	case x.last != nil:
		return x.last.word()
	}
	return causeConnect
}

// lines returns the lines above the rows: the worst trouble first, and then the line with the most Conns.
func lines(list []ranked) []aboutInfo {
	byAbout := map[about]*aboutInfo{}
	for i := range list {
		x := &list[i]
		if x.cause == "" {
			continue
		}
		key := about{x.trouble, x.server, x.cause}
		line := byAbout[key]
		if line == nil {
			line = &aboutInfo{Condition: x.trouble.String(), Server: x.server, Cause: x.cause, Query: key.query()}
			byAbout[key] = line
		}
		line.add(x)
	}
	all := make([]aboutInfo, 0, len(byAbout))
	for _, line := range byAbout {
		if line.Conns == 1 {
			line.Text = strings.Replace(line.Text, "wait behind", "waits behind", 1)
		}
		all = append(all, *line)
	}
	slices.SortFunc(all, func(a, b aboutInfo) int {
		rank := func(l aboutInfo) int { return slices.Index(troubles[:], l.Condition) }
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Conns, a.Conns), cmp.Compare(a.Query, b.Query))
	})
	return all
}

// isMore reports whether the Conn has a line that is none of those that are shown.
func (x *ranked) isMore(shown []aboutInfo) bool {
	query := about{x.trouble, x.server, x.cause}.query()
	return x.cause != "" && !slices.ContainsFunc(shown, func(l aboutInfo) bool { return l.Query == query })
}

// query returns the query that finds the Conns of the line.
func (a about) query() string {
	values := url.Values{"show": {a.trouble.String()}, "cause": {a.cause}}
	if a.server != "" {
		values.Set("server", a.server)
	}
	return "?" + values.Encode()
}

// add adds a Conn to its line.
func (l *aboutInfo) add(x *ranked) {
	l.Conns++
	if l.Text == "" {
		l.Text = x.sentence()
	}
	next := time.Unix(0, x.next)
	switch {
	case !isGate(l.Cause) && x.next != 0 && (l.Next.IsZero() || next.Before(l.Next)):
		l.Next, l.By = next, x.name
	case isGate(l.Cause) && x.probe != nil:
		l.Next, l.By, l.Error = x.probe.Next, x.probe.By, x.probe.Text
	}
	if since := x.since; since != 0 && x.trouble != troubleFlapping && (l.Since.IsZero() || since < l.Since.UnixNano()) {
		l.Since = time.Unix(0, since)
	}
}

// sentence returns what the line says after the number of its Conns.
func (x *ranked) sentence() string {
	server := cmp.Or(x.server, "the server")
	switch {
	case isGate(x.cause):
		return "wait behind one gate for " + server
	case x.cause == causeConnect:
		return "not connected yet to " + server
	case x.trouble == troubleEnded:
		return "ended for good: " + x.last.about(server)
	case x.trouble == troubleFlapping:
		return "lost again and again: " + x.last.about(server)
	}
	return x.last.about(server)
}

// word returns the cause in a query: the code of the server's answer or of its close frame, or the reason.
func (c *causeInfo) word() string {
	if c.code != 0 {
		return strconv.Itoa(c.code)
	}
	return c.Reason
}

// about returns the cause as what has happened to a Conn that dials server.
func (c *causeInfo) about(server string) string {
	switch {
	case c.status && c.code != 0:
		return strings.TrimSpace(fmt.Sprintf("answered %d %s by %s", c.code, http.StatusText(c.code), server))
	case c.code != 0:
		return strings.Replace(closeText(c.code), "the peer", server, 1)
	}
	if text := aboutTexts[c.Reason]; text != "" {
		host, _, err := net.SplitHostPort(server)
		if err != nil {
			host = server
		}
		return strings.NewReplacer("{server}", server, "{host}", host).Replace(text)
	}
	if c.Text != "" {
		return "away from " + server + ": " + c.Text
	}
	return "away from " + server
}

// aboutTexts say what has happened, for the reasons that need no more words.
var aboutTexts = map[string]string{
	backoff.ReasonRefused.String():    "refused by {server}",
	backoff.ReasonTimeout.String():    "not answered in time by {server}",
	backoff.ReasonDNS.String():        "without an address: the name {host} was not resolved",
	backoff.ReasonTLS.String():        "stopped at TLS with {server}: a certificate, or an alert",
	backoff.ReasonHangup.String():     "cut off by {server}",
	backoff.ReasonSilent.String():     "lost: {server} was silent for too long",
	backoff.ReasonStalled.String():    "lost: no message came from {server} for too long",
	backoff.ReasonOpen.String():       "not ready in time at {server}",
	backoff.ReasonProtocol.String():   "lost: {server} broke the rules of the protocol",
	backoff.ReasonSlowReader.String(): "lost: the program read too slowly from {server}",
	backoff.ReasonLogins.String():     "without a login for {server}: the budget is used up",
	backoff.ReasonRedial.String():     "redialed by the program, to {server}",
	backoff.ReasonRotated.String():    "to be replaced, at {server}",
}

// serverOf returns the host and the port of an endpoint, or of each of several endpoints, or the text itself if
// it is no URL.
func serverOf(endpoint string) string {
	var servers []string
	for text := range strings.SplitSeq(endpoint, ", ") {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			return endpoint
		}
		host := u.Host
		if port := ports[u.Scheme]; u.Port() == "" && port != "" {
			host = net.JoinHostPort(u.Hostname(), port)
		}
		if !slices.Contains(servers, host) {
			servers = append(servers, host)
		}
	}
	return strings.Join(servers, ", ")
}

var ports = map[string]string{"ws": "80", "wss": "443"}
