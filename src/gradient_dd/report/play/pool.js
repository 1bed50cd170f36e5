"use strict";
// Jobs for the engine, distributed to workers that the page makes from its own text, so that it also works from a file. A
// channel, such as one stop, has one running request and at most one waiting: while you drag, the newest request waits.

const pool = { workers: [], idle: [], urgent: [], lazy: [], busy: {}, waiting: {}, updates: 0, seconds: 0 };
const WORKER = `let ready = [];
onmessage = event => {
  if (event.data.tasks) { ready = event.data.tasks.map(prepare); return; }
  const begin = performance.now(), found = work(ready[event.data.task], event.data);
  postMessage({ found, seconds: (performance.now() - begin) / 1000 });
};`;

function startPool(tasks, count) {
  const source = new Blob([document.getElementById("engine").textContent, WORKER], { type: "text/javascript" });
  pool.tasks = tasks.map(prepare);
  try {
    for (let i = 0; i < count; i++) {
      const worker = new Worker(URL.createObjectURL(source));
      worker.postMessage({ tasks });
      worker.onerror = () => { // the browser refuses workers: the page itself does the work
        pool.workers = []; pool.idle = [];
        if (worker.job) pool.urgent.unshift(worker.job);
        workHere();
      };
      pool.workers.push(worker); pool.idle.push(worker);
    }
  } catch (refused) { pool.workers = []; pool.idle = []; }
}

// Request jobs; `done` gets all results, in the order of the jobs, when all are complete.
function ask(channel, jobs, done, lazy = false) {
  if (pool.busy[channel]) { pool.waiting[channel] = [jobs, done, lazy]; return; }
  const results = new Array(jobs.length);
  let left = jobs.length;
  pool.busy[channel] = true;
  const finish = () => {
    pool.busy[channel] = false;
    done(results);
    showSpeed();
    const next = pool.waiting[channel];
    delete pool.waiting[channel];
    if (next) ask(channel, ...next);
    document.documentElement.dataset.state = Object.values(pool.busy).some(Boolean) ? "busy" : "ready";
  };
  document.documentElement.dataset.state = "busy";
  const queue = lazy ? pool.lazy : pool.urgent;
  jobs.forEach((job, place) => queue.push({ job, take(found) { results[place] = found; if (--left === 0) finish(); } }));
  if (!jobs.length) finish();
  else if (pool.workers.length) deal(); else workHere();
}

function deal() {
  while (pool.idle.length && pool.urgent.length + pool.lazy.length) {
    const worker = pool.idle.pop();
    worker.job = pool.urgent.shift() || pool.lazy.shift();
    worker.onmessage = event => {
      const { take } = worker.job;
      worker.job = null; pool.idle.push(worker);
      count(event.data.found, event.data.seconds);
      take(event.data.found);
      deal();
    };
    worker.postMessage(worker.job.job);
  }
}

// Without workers: one job at a time, so that the page responds between jobs.
function workHere() {
  if (pool.here) return;
  pool.here = true;
  setTimeout(function next() {
    const one = pool.urgent.shift() || pool.lazy.shift();
    if (!one) { pool.here = false; return; }
    const begin = performance.now(), found = work(pool.tasks[one.job.task], one.job);
    count(found, (performance.now() - begin) / 1000);
    one.take(found);
    setTimeout(next);
  });
}

function showSpeed() {
  const threads = pool.workers.length > 1 ? `each of ${pool.workers.length} threads` : "one thread";
  const done = grouped(Math.round(pool.updates / 1e6)), pace = short(pool.updates / pool.seconds / 1e6);
  document.getElementById("speed").textContent = `${done} million updates so far, ${pace} million a second on ${threads}.`;
}

function count(found, seconds) { pool.updates += found.updates; pool.seconds += seconds; }
