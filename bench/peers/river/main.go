// River on PostgreSQL behind a small HTTP server: POST creates a job, GET tells whether any is not finished.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	maxAttempts   = 3
	callTimeout   = 30 * time.Second
	fetchCooldown = 5 * time.Millisecond
	connections   = 12
)

type callArgs struct {
	URL  string          `json:"url"`
	Body json.RawMessage `json:"body"`
}

func (callArgs) Kind() string { return "call" }

type callWorker struct {
	river.WorkerDefaults[callArgs]
	client *http.Client
}

type result struct {
	Code int    `json:"code"`
	Body string `json:"body"`
}

func (worker *callWorker) Work(ctx context.Context, job *river.Job[callArgs]) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, job.Args.URL, bytes.NewReader(job.Args.Body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := worker.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("the target answered %d", answer.StatusCode)
	}
	return river.RecordOutput(ctx, result{Code: answer.StatusCode, Body: string(text)})
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	concurrency, err := strconv.Atoi(os.Getenv("CONCURRENCY"))
	if err != nil {
		return err
	}
	timeout := callTimeout
	if os.Getenv("CALL_TIMER") == "0" {
		timeout = 0
	}
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	config.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = concurrency, concurrency
	workers := river.NewWorkers()
	river.AddWorker(workers, &callWorker{client: &http.Client{Transport: transport, Timeout: timeout}})
	client, err := river.NewClient(driver, &river.Config{
		FetchCooldown: fetchCooldown,
		Logger:        slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		MaxAttempts:   maxAttempts,
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: concurrency}},
		Workers:       workers,
	})
	if err != nil {
		return err
	}
	if err = client.Start(ctx); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	return http.Serve(listener, handler(client, pool))
}

func handler(client *river.Client[pgx.Tx], pool *pgxpool.Pool) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		if request.Method == http.MethodGet {
			var isBusy bool
			err := pool.QueryRow(request.Context(),
				"SELECT EXISTS (SELECT FROM river_job WHERE state IN ('available', 'pending', 'retryable', 'running', 'scheduled'))").Scan(&isBusy)
			if err != nil {
				http.Error(writer, err.Error(), http.StatusInternalServerError)
				return
			}
			data := []int{}
			if isBusy {
				data = append(data, 1)
			}
			_ = json.NewEncoder(writer).Encode(map[string]any{"data": data})
			return
		}
		var args callArgs
		if err := json.NewDecoder(request.Body).Decode(&args); err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		inserted, err := client.Insert(request.Context(), args, nil)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
			return
		}
		writer.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(writer).Encode(map[string]any{"id": inserted.Job.ID})
	}
}
