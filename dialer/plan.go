package dialer

//lint:file-ignore ST1005 the texts of Validate begin with the name of an option

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// setup makes the plan, once.
func (d *WebSocket) setup() (*plan, error) {
	d.once.Do(func() { d.plan, d.err = d.makePlan() })
	return d.plan, d.err
}

// makePlan checks the options and makes of them what is used from then on.
func (d *WebSocket) makePlan() (*plan, error) {
	endpoints, err := d.endpoints()
	if err == nil {
		err = d.validateRest()
	}
	if err != nil {
		return nil, invalid("WebSocket", err)
	}
	return newPlan(endpoints, d.tlsConfig(), d.Random), nil
}

func newPlan(endpoints []*url.URL, t *tls.Config, random rand.Source) *plan {
	return &plan{endpoints: endpoints, tls: t, known: make([]knowledge, len(endpoints)), shuffle: newShuffler(new(sync.Mutex), random)}
}

// endpoints parses the URLs.
func (d *WebSocket) endpoints() ([]*url.URL, error) {
	return parseEndpoints("URL", d.URL, "URLs", d.URLs, parseEndpoint)
}

// parseEndpoints parses what stands in one of two options, of which the other
// must be empty.
func parseEndpoints(name, single, names string, many []string, parse func(string) (*url.URL, error)) ([]*url.URL, error) {
	switch {
	case single != "" && len(many) > 0:
		return nil, fmt.Errorf("%s and %s: want one of them", name, names)
	case single != "":
		u, err := parse(single)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return []*url.URL{u}, nil
	case len(many) == 0:
		return nil, fmt.Errorf("%s: missing", name)
	}
	var endpoints []*url.URL
	for i, raw := range many {
		u, err := parse(raw)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", names, i, err)
		}
		endpoints = append(endpoints, u)
	}
	return endpoints, nil
}

// validateRest checks all options but the URLs.
func (d *WebSocket) validateRest() error {
	if err := validateHeader(d.Header); err != nil {
		return fmt.Errorf("Header: %w", err)
	}
	for i, s := range d.Subprotocols {
		if !validToken(s) || slices.Contains(d.Subprotocols[:i], s) {
			return fmt.Errorf("Subprotocols[%d]: %q is no token, or there twice", i, printable(s))
		}
	}
	if t := d.Transport; t != nil {
		//lint:ignore SA1019 the deprecated fields are refused
		if t.Dial != nil || t.DialTLS != nil || t.DialTLSContext != nil {
			return errors.New("Transport: Dial, DialTLS and DialTLSContext are not used; set DialContext and TLS")
		}
	}
	switch {
	case d.Compression > CompressionContextTakeover:
		return fmt.Errorf("Compression: %d is no mode", d.Compression)
	case d.MaxHeaderBytes < 0:
		return fmt.Errorf("MaxHeaderBytes: %d is negative", d.MaxHeaderBytes)
	}
	if err := validateLimits(d.ConnectTimeout, d.HandshakeTimeout); err != nil {
		return err
	}
	if err := d.TCP.validate(); err != nil {
		return fmt.Errorf("TCP.%w", err)
	}
	if err := d.Conn.Validate(); err != nil {
		return fmt.Errorf("Conn: %w", err)
	}
	return nil
}

// tlsConfig is what TLS or Transport says, with the defaults. It is never changed
// afterwards, because a resumed session would not be checked again by a changed one.
func (d *WebSocket) tlsConfig() *tls.Config {
	if d.TLS == nil && d.Transport != nil {
		return tlsDefaults(d.Transport.TLSClientConfig)
	}
	return tlsDefaults(d.TLS)
}

// host is the text of [WebSocket.Host] and [TCP.Host].
func (p *plan) host() string {
	var hosts []string
	for _, u := range p.endpoints {
		hosts = append(hosts, hostPort(u))
	}
	slices.Sort(hosts)
	return strings.Join(slices.Compact(hosts), ",")
}
