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
)

// setup makes the plan, once.
func (d *WebSocket) setup() (*plan, error) {
	d.once.Do(func() { d.plan, d.err = d.newPlan() })
	return d.plan, d.err
}

// newPlan checks the options and makes of them what is used from then on.
func (d *WebSocket) newPlan() (*plan, error) {
	endpoints, err := d.endpoints()
	if err == nil {
		err = d.validateRest()
	}
	if err != nil {
		return nil, invalid(err)
	}
	p := &plan{endpoints: endpoints, tls: d.tlsConfig(), known: make([]knowledge, len(endpoints)), shuffle: rand.Shuffle}
	if d.Random != nil {
		p.shuffle = rand.New(d.Random).Shuffle
	}
	return p, nil
}

// endpoints parses the URLs.
func (d *WebSocket) endpoints() ([]*url.URL, error) {
	switch {
	case d.URL != "" && len(d.URLs) > 0:
		return nil, errors.New("URL and URLs: want one of them")
	case d.URL != "":
		u, err := parseEndpoint(d.URL)
		if err != nil {
			return nil, fmt.Errorf("URL: %w", err)
		}
		return []*url.URL{u}, nil
	case len(d.URLs) == 0:
		return nil, errors.New("URL: missing")
	}
	var endpoints []*url.URL
	for i, raw := range d.URLs {
		u, err := parseEndpoint(raw)
		if err != nil {
			return nil, fmt.Errorf("URLs[%d]: %w", i, err)
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
	case d.ConnectTimeout < 0:
		return fmt.Errorf("ConnectTimeout: %v is negative", d.ConnectTimeout)
	case d.HandshakeTimeout < 0:
		return fmt.Errorf("HandshakeTimeout: %v is negative", d.HandshakeTimeout)
	case d.MaxHeaderBytes < 0:
		return fmt.Errorf("MaxHeaderBytes: %d is negative", d.MaxHeaderBytes)
	}
	if err := d.TCP.validate(); err != nil {
		return fmt.Errorf("TCP.%w", err)
	}
	if err := d.Conn.Validate(); err != nil {
		return fmt.Errorf("Conn: %w", err)
	}
	return nil
}

// tlsConfig is the one configuration of all attempts. It is never changed
// afterwards: that a resumed session skips a changed one was CVE-2025-68121.
func (d *WebSocket) tlsConfig() *tls.Config {
	var c *tls.Config
	switch {
	case d.TLS != nil:
		c = d.TLS.Clone()
	case d.Transport != nil && d.Transport.TLSClientConfig != nil:
		c = d.Transport.TLSClientConfig.Clone()
	default:
		c = &tls.Config{}
	}
	if c.MinVersion == 0 {
		c.MinVersion = tls.VersionTLS12
	}
	if c.ClientSessionCache == nil {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	return c
}

// host is the text of [WebSocket.Host].
func (p *plan) host() string {
	var hosts []string
	for _, u := range p.endpoints {
		hosts = append(hosts, hostPort(u))
	}
	slices.Sort(hosts)
	return strings.Join(slices.Compact(hosts), ",")
}
