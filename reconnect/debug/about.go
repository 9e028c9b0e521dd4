package debug

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// aboutInfo is about Conns that have the same trouble for the same reason.
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
	More      int       `json:"more,omitempty"` // as in gateInfo, but Conns

	rank   int  // of the Conns
	probed bool // Next and By are those of a gate's next probe
}

// Probing reports whether the next probe of a gate is in progress.
func (l *aboutInfo) Probing() bool { return l.probed && l.Next.IsZero() }

// The causes of a Conn that are not those of a causeInfo.
const (
	causeGate    = "gate"    // it waits at a gate
	causeConnect = "connect" // no dial has failed yet
)

// aboutShown is the number of lines above the rows.
const aboutShown = 8

// lines returns the lines above the rows, those of the worst condition first, and of these the one with the
// most Conns. The last one counts the Conns of those beyond aboutShown. It sets the line of each Conn in trouble.
func lines(conns []*connInfo) []aboutInfo {
	probes := map[string]string{} // by server: why the last probe of a gate failed
	for _, c := range conns {
		if c.AtGate && c.Probe != nil {
			probes[c.server] = c.Probe.word
		}
	}
	byLine := map[string]*aboutInfo{}
	for _, c := range conns {
		if c.rank >= rankReady {
			continue
		}
		cause := c.trouble(probes[c.server])
		c.line = c.Condition + " " + c.server + " " + cause
		l := byLine[c.line]
		if l == nil {
			l = &aboutInfo{
				Condition: c.Condition, Server: c.server, Cause: cause, rank: c.rank,
				Text: lineText(c.rank, cause, c.server), Query: "?show=" + url.QueryEscape(c.line),
			}
			byLine[c.line] = l
		}
		l.add(c)
	}
	all := make([]aboutInfo, 0, len(byLine))
	for _, l := range byLine {
		all = append(all, *l)
	}
	slices.SortFunc(all, func(a, b aboutInfo) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.Conns, a.Conns), cmp.Compare(a.Query, b.Query))
	})
	if len(all) > aboutShown {
		for _, l := range all[aboutShown:] {
			all[aboutShown-1].More += l.Conns
		}
		all = all[:aboutShown:aboutShown]
	}
	return all
}

// trouble returns the cause of a Conn in trouble. A Conn whose dial has failed as the last probe of a gate
// for its server has probed for those that wait there.
func (c *connInfo) trouble(probe string) string {
	switch {
	case c.rank == rankAway && c.AtGate:
		return causeGate
	case c.Cause == nil:
		return causeConnect
	case c.rank == rankAway && c.Cause.word() == probe:
		return causeGate
	}
	return c.Cause.word()
}

// lineText returns what a line says after the number of its Conns.
func lineText(rank int, cause, server string) string {
	server = cmp.Or(server, "the server")
	switch {
	case cause == causeGate:
		return "at the gate for " + server
	case cause == causeConnect:
		return "not connected yet to " + server
	case rank == rankAway:
		return "away from " + server
	}
	return conditions[rank] + " at " + server
}

// add adds a Conn to its line.
func (l *aboutInfo) add(c *connInfo) {
	l.Conns++
	switch p := c.Probe; {
	case l.Cause != causeGate:
		if c.Cause != nil && l.Error == "" {
			l.Error = c.Cause.Text
		}
		if !c.Next.IsZero() && (l.Next.IsZero() || c.Next.Before(l.Next)) {
			l.Next, l.By = c.Next, c.Name
		}
	case p != nil && (!l.probed || p.Next.Before(l.Next)): // a zero Next means that the probe is in progress
		l.probed, l.Next, l.By, l.Error = true, p.Next, p.By, p.Text
	}
	if !c.AwaySince.IsZero() && (l.Since.IsZero() || c.AwaySince.Before(l.Since)) {
		l.Since = c.AwaySince
	}
}

// serverOf returns the host and the port of an endpoint, or of each of several endpoints, or the text itself
// if it is no URL.
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
