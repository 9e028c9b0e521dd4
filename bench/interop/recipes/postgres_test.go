//go:build linux

package recipes_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/internal/server"
)

const settings = `create table settings (key text primary key, value text not null);
create function changed() returns trigger language plpgsql as $$ begin
  perform pg_notify('settings', case when tg_op = 'DELETE' then old.key else new.key end); return null; end $$;
create trigger changed after insert or update or delete on settings for each row execute function changed();`

// store executes statements by a connection of its own, for which it waits while the server starts up.
func store(t *testing.T, url string, statements ...string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, url)
	for err != nil && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
		c, err = pgx.Connect(ctx, url)
	}
	require.NoError(t, err)
	defer c.Close(context.Background())
	for _, statement := range statements {
		_, err := c.Exec(ctx, statement)
		require.NoError(t, err)
	}
}

func set(key string, value int) string {
	return fmt.Sprintf("insert into settings values ('%s', '%d') on conflict (key) do update set value = excluded.value", key, value)
}

// PostgreSQL is killed three times. At each end the copy has the last value of every key, also of those that changed before
// the recipe listened again, and no value comes twice.
func TestPostgres(t *testing.T) {
	s, url := server.Postgres(t)
	store(t, url, settings, set("a", -1), set("gone", -1))
	r := run(t, "postgres", "-url", url)
	for i := range 4 {
		r.await(i+1, "^copied")
		var changes []string
		for n := range 100 {
			changes = append(changes, set("a", i*1000+n), set("b", i*1000+n))
		}
		store(t, url, append(changes, "delete from settings where key = 'gone'")...)
		r.await(1, fmt.Sprintf("^changed a %d$", i*1000+99))
		r.await(1, fmt.Sprintf("^changed b %d$", i*1000+99))
		r.ask("a", fmt.Sprintf("value a %d true", i*1000+99))
		r.ask("gone", "value gone <nil> false")
		if i == 3 {
			break
		}
		s.Kill()
		s.Start()
		// Perhaps before the recipe listens again. If so, no notification says so.
		store(t, url, set("a", i*1000+500), set("b", i*1000+500), set("gone", i))
		r.await(i+2, "^copied")
		r.ask("a", fmt.Sprintf("value a %d true", i*1000+500))
		r.ask("gone", fmt.Sprintf("value gone %d true", i))
	}
	seen := map[string]bool{}
	for _, line := range r.matches("^changed") {
		require.False(t, seen[line], "%s came twice", line)
		seen[line] = true
	}
	full := pipe(t, "postgres", "-url", url)
	full.kill()
	full.startFull()
	full.waitFull()
	t.Logf("%d of 812 changes were seen one by one, the others with the one after them", len(seen))
}

// ask enters a key until the answer is the right one, because a change may be on its way. It fails with the deadline of
// await.
func (r *recipe) ask(key, want string) {
	r.t.Helper()
	for answers := r.matches("^value "); ; {
		_, err := io.WriteString(r.in, key+"\n")
		require.NoError(r.t, err)
		r.await(len(answers)+1, "^value ")
		answers = r.matches("^value ")
		if answers[len(answers)-1] == want {
			return
		}
	}
}
