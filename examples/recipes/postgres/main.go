// Postgres keeps a copy of a table in memory, by LISTEN and NOTIFY. For each line of standard input, a key, it prints
// the value from the copy; while no copy is up to date, the key waits for one. A notification is only a hint: it names
// a row, which the program reads. A change made between two sessions has no notification, so each session listens
// first, and then reads the whole table. Two changes of a row that come faster than the program reads are one change. A
// key over 64 KiB is reported and left out. The exit code is 4 if the standard output fails.
//
// The table is settings (key text primary key, value text not null), and a trigger calls pg_notify('settings', key).
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/current"
)

const limit = 30 * time.Second // on each statement, and on the silence before a ping

// listener is a connection whose Close may be called at any time, and more than once.
type listener struct{ *pgx.Conn }

func (l listener) Close() error { return l.PgConn().Conn().Close() }

func (l listener) fill(ctx context.Context, rows *sync.Map) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, err := l.Exec(ctx, "listen settings"); err != nil {
		return err
	}
	var key, value string
	all, _ := l.Query(ctx, "select key, value from settings") // its error is in all
	_, err := pgx.ForEachRow(all, []any{&key, &value}, func() error { rows.Store(key, value); return nil })
	return err
}

// update waits for a notification, and reads the row that it names.
func (l listener) update(ctx context.Context, rows *sync.Map) error {
	silent, cancel := context.WithTimeout(ctx, limit)
	n, err := l.WaitForNotification(silent)
	cancel()
	ctx, cancel = context.WithTimeout(ctx, limit)
	defer cancel()
	if errors.Is(err, context.DeadlineExceeded) {
		return l.Ping(ctx)
	} else if err != nil {
		return err
	}
	var value string
	err = l.QueryRow(ctx, "select value from settings where key = $1", n.Payload).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		rows.Delete(n.Payload)
		return nil
	} else if err == nil {
		if old, _ := rows.Swap(n.Payload, value); old != value {
			output("changed", n.Payload, value)
		}
	}
	return err
}

func follow(ctx context.Context, url string, copies *current.Of[*sync.Map]) error {
	dial := func(ctx context.Context) (listener, error) { c, err := pgx.Connect(ctx, url); return listener{c}, err }
	return reconnect.Run(ctx, dial, func(ctx context.Context, l listener, s *reconnect.Session) error {
		rows := new(sync.Map)
		err := l.fill(ctx, rows)
		if err != nil {
			return err
		}
		s.Ready()
		output("copied by session", s.Number)
		ctx, remove := copies.Set(ctx, rows) // from here on keys are looked up in rows
		defer remove()
		for err == nil {
			err = l.update(ctx, rows)
		}
		return err
	}, &reconnect.RunOptions{Trace: reconnect.Log(slog.Default())})
}

func main() {
	url := flag.String("url", "postgres://127.0.0.1:5432/postgres", "the database")
	flag.Parse()
	copies := new(current.Of[*sync.Map])
	go func() { log.Fatal(follow(context.Background(), *url, copies)) }() // runs as long as the program
	for _, key := range lines {
		rows, _ := copies.Wait(context.Background()) // no error, because nothing ends it
		value, ok := rows.Load(key)
		output("value", key, value, ok)
	}
	select {} // the changes go on
}

// lines yields the numbered lines of the standard input. A line over 64 KiB is reported and left out.
func lines(yield func(number int, line string) bool) {
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	for number := 1; ; number++ {
		part, long, err := in.ReadLine()
		line := string(part)
		for more := long; more; _, more, err = in.ReadLine() { // skip the rest
		}
		if long {
			slog.Error("line left out: longer than 64 KiB", "line", number, "begins", line[:40])
		} else if err != nil || !yield(number, line) {
			slog.Info("end of input", "err", err)
			return
		}
	}
}

// output prints a line, or ends the program with exit code 4, so that a full disk is noticed.
func output(values ...any) {
	if _, err := fmt.Println(values...); err != nil {
		slog.Error("standard output", "err", err)
		os.Exit(4)
	}
}
