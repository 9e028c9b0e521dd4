//go:build !js

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redial-go/redial/examples/internal/program"
)

// serveIt starts a server at addr, or at a free port if addr is empty. It returns the address.
func serveIt(t *testing.T, addr string, args ...string) (*program.Program, string) {
	t.Helper()
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	p := program.Start(t, append([]string{"serve", "-addr", addr}, args...)...)
	return p, p.Find(`serving ws://(\S+)/\r?\n`)[1]
}

// joinIt starts a client that joins the room at addr.
func joinIt(t *testing.T, addr, name string, args ...string) *program.Program {
	t.Helper()
	return program.Start(t, append([]string{"join", "-url", "ws://" + addr + "/", "-name", name}, args...)...)
}

// hurry enters empty lines, each of which makes a client dial at once, until p has written
// text that many times.
func hurry(p *program.Program, text string, times int) {
	for strings.Count(p.String(), text) < times {
		select {
		case <-p.Ended():
			p.Await(text) // fails
			return
		case <-time.After(20 * time.Millisecond):
			p.Type("")
		}
	}
}

// heard returns the lines of an author that a client has shown.
func heard(out fmt.Stringer, author string) (texts []string) {
	for _, found := range regexp.MustCompile(`(?m)^`+author+`: (.*?)\r?$`).FindAllStringSubmatch(out.String(), -1) {
		texts = append(texts, found[1])
	}
	return texts
}
