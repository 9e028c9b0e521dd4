package chromium

import (
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
)

// record is what a page has said. Its zero value is empty.
type record struct {
	mu       sync.Mutex // guards the lines
	console  []string
	problems []string
}

// note takes an event of the tab. It runs in the goroutine that reads from the browser.
func (r *record) note(event any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		words := make([]string, len(e.Args))
		for i, a := range e.Args {
			words[i] = text(a)
		}
		line := string(e.Type) + ": " + strings.Join(words, " ")
		r.console = append(r.console, line)
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			r.problems = append(r.problems, line)
		}
	case *runtime.EventExceptionThrown:
		line := "exception: " + e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			line += " " + x.Description
		}
		r.problems = append(r.problems, line)
	case *log.EventEntryAdded: // of the browser itself: requests that have failed, violations of the policy
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			r.problems = append(r.problems, strings.TrimSpace(string(e.Entry.Source)+": "+e.Entry.Text+" "+e.Entry.URL))
		}
	}
}

// text returns an argument of console.log as a word.
func text(o *runtime.RemoteObject) string {
	if o.Type == "string" {
		return strings.Trim(o.Value.String(), `"`)
	}
	if o.Description != "" {
		return o.Description
	}
	return o.Value.String()
}

func (r *record) all(problems bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if problems {
		return slices.Clone(r.problems)
	}
	return slices.Clone(r.console)
}
