//go:build !js

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redial-go/redial/conn"
)

const usage = `usage: wscat [flags] URL
       wscat -version

Writes each message from the WebSocket server at URL (ws:// or wss://) to standard output, and
sends each line of standard input. When the connection is lost it dials again. Ctrl-C ends it,
and so does Ctrl-D on a terminal; a second Ctrl-C ends it at once. On a terminal an empty line
dials at once while the server is away.

In the end it takes 3 s at most to send what is left, after Ctrl-C 0.25 s. Received messages are
still written, after Ctrl-C and -for within 6 s, else however slowly standard output is read.

  -H 'Name: value'   send this header with each handshake; may be repeated
  -subprotocol NAME  offer this subprotocol; may be repeated, the best first
  -subscribe TEXT    send this text message first on each new connection, also with -binary;
                     may be repeated
  -x TEXT            send this line, wait for answers as -q says (2s without -q), and end;
                     standard input is not read; may be repeated
  -once              do not dial again: the first failure, or the first loss, is the end
  -for DURATION      end after this time, such as 10s or 5m, counted from the start
  -q DURATION        after the end of standard input, when every line has its fate, end as soon
                     as no message has come for this long, not counting the time that standard
                     output is not read; 0s waits for no answer; without -q the end of a pipe
                     ends nothing
  -json              write everything that happens to standard output, as JSON, see below
  -binary FORM       hex or base64: a line is a binary message in this form; binary messages
                     that are received are written in this form too (default hex)
  -max BYTES         the largest message to receive or send (default 16777216)
  -version           print the version of wscat

On a terminal, messages begin with "< ", control characters are escaped, and what is longer
than 4096 bytes is cut. In a pipe or a file a message is as it came, and a line feed behind it.

Exit codes; of several that apply, the first:
  2  wrong usage
  3  refused: trying again will not help (401, 404, a certificate, no WebSocket there);
     after the first connection only 410 counts
  1  there never was a connection
  4  standard output could not be written; if its reader just left, that is no failure; before
     all others: after Ctrl-C or -for it was not read in time
  5  with -once: the connection was lost; if the server closed it with 1000 or without a code,
     that is no failure
  6  not every line of standard input, or of -x, was written to a connection; what was not yet
     read from standard input in the end does not count
  0  else: -for, -q, -x, Ctrl-C or Ctrl-D has ended it

With -json each line is an object. "time" and "event" are always there, "session" is the number
of the connection, counted from 1, and a number of seconds is a fraction. The events are:
  ready    a connection can be used: session; subprotocol, if one was agreed on; away: seconds
           since the last connection was lost, or since the start
  message  session; text; or base64, if the message is binary, or a text that is not UTF-8;
           binary: true, if it is
  seam     messages may be missing here: session: the one that has ended; cause
  wait     before the next dial: try: its number; wait: seconds; retry_after: the part of them
           that the server asked for; cause
  hung     a dial is connected and not answered, and another one begins beside it: try; since:
           seconds
  fate     of a line of standard input or -x: line: its number; fate: written, dropped (nothing
           was sent) or unknown; text or base64; session, if it was tried; cause
  end      the last event: code: the exit code; cause, if there is one; written, dropped and
           unknown: the numbers of the fates
Fields may be added.
`

// executeLinger is the default of -q with -x, as of -w in the wscat of Node.js.
const executeLinger = 2 * time.Second

// maxMax is the largest -max: twice as much is still an int on a machine of 32 bits.
const maxMax = 1 << 29

// options are what the flags say.
type options struct {
	url          string
	header       http.Header
	subprotocols []string
	subscribe    []conn.Message
	execute      []string // -x; nil: standard input is read
	once, json   bool
	length       time.Duration // 0: no end
	linger       time.Duration // negative: for ever
	form         form
	max          int64
}

// parse returns the options in args. If args ask for help or for the version, parse prints it to stdout
// and returns [flag.ErrHelp]. The errors hold no value of a header and no part of the
// URL, because these may be secrets.
func parse(args []string, stdout io.Writer) (*options, error) {
	o := &options{header: http.Header{}, linger: -1, max: 16 << 20}
	var headers, subscribe, urls []string
	version := false
	flags := flag.NewFlagSet("wscat", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run prints the error
	list := func(to *[]string) func(string) error {
		return func(text string) error { *to = append(*to, text); return nil }
	}
	flags.Func("H", "", list(&headers))
	flags.Func("subprotocol", "", list(&o.subprotocols))
	flags.Func("subscribe", "", list(&subscribe))
	flags.Func("x", "", list(&o.execute))
	flags.Func("c", "", list(&urls))
	flags.BoolVar(&version, "version", false, "")
	flags.BoolVar(&o.once, "once", false, "")
	flags.BoolVar(&o.json, "json", false, "")
	flags.DurationVar(&o.length, "for", 0, "")
	flags.DurationVar(&o.linger, "q", -1, "")
	flags.Int64Var(&o.max, "max", o.max, "")
	flags.TextVar(&o.form, "binary", formText, "")
	for { // flags may also come after the URL
		err := flags.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stdout, usage)
		}
		if err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			break
		}
		if o.url != "" {
			return nil, errors.New("there is more than one URL: must a value with spaces be in quotes?")
		}
		o.url, args = flags.Arg(0), flags.Args()[1:]
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case version:
		fmt.Fprintln(stdout, versionLine())
		return nil, flag.ErrHelp
	case urls != nil:
		return nil, errors.New("there is no -c: give the URL alone, as in wscat URL")
	case o.url == "":
		return nil, errors.New("the URL is missing")
	case given["for"] && o.length <= 0:
		return nil, fmt.Errorf("-for: want more than 0, not %v", o.length)
	case given["q"] && o.linger < 0:
		return nil, fmt.Errorf("-q: want 0 or more, not %v", o.linger)
	case o.max < 1 || o.max > maxMax:
		return nil, fmt.Errorf("-max: want 1 to %d, not %d", maxMax, o.max)
	}
	if o.execute != nil && !given["q"] {
		o.linger = executeLinger
	}
	return o, errors.Join(o.setHeader(headers), o.setSubscribe(subscribe))
}

// versionLine returns what -version prints, such as "wscat v0.1.0 go1.26.0 linux/amd64". The version of a build in a checkout is "(devel)",
// or is made from the commit.
func versionLine() string {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	return fmt.Sprintf("wscat %s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func (o *options) setHeader(lines []string) error {
	for i, line := range lines {
		name, value, found := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !found || name == "" {
			return fmt.Errorf("-H: header %d has no name and colon: want 'Name: value'", i+1)
		}
		o.header.Add(name, strings.TrimSpace(value))
	}
	return nil
}

func (o *options) setSubscribe(texts []string) error {
	for i, text := range texts {
		switch {
		case !utf8.ValidString(text):
			return fmt.Errorf("-subscribe: message %d is not UTF-8", i+1)
		case int64(len(text)) > o.max:
			return fmt.Errorf("-subscribe: message %d is %w", i+1, errTooLong)
		}
		o.subscribe = append(o.subscribe, conn.TextMessage(text))
	}
	return nil
}
