/**
 * Plays a whole game of each ruleset, by random legal moves, on the server whose URL is the only argument. Uses nothing but
 * the generated types, by way of openapi-fetch.
 */
import { randomInt, randomUUID } from "node:crypto";
import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "../generated/schema.js";

type Schemas = components["schemas"];
/** The event streams beside the pages are for other programs; without this, pages would have the type of a page or a stream. */
type Media = "application/json" | "application/problem+json";
type Api = Client<paths, Media>;

/** Ends the program with a sentence, unless a thing is as it has to be. */
function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

/** The body of an answer that must be a success; what else came ends the program. */
function must<Data>(answer: { data?: Data; error?: Schemas["Problem"]; response: Response }): Data {
  if (answer.error) throw new Error(`${answer.error.code}: ${answer.error.detail}`);
  check(answer.data !== undefined, `no body: ${answer.response.status}`);
  return answer.data;
}

/** A version as `If-Match` wants it. */
const tag = (version: number): string => `"${version}"`;

/** Registers a player; answers a client that sends its token. */
async function register(url: string, visitor: Api): Promise<Api> {
  const registration = must(
    await visitor.POST("/v1/players", {
      params: { header: { "Idempotency-Key": randomUUID() } },
      body: { name: `typescript-${randomUUID().slice(0, 18)}`, kind: "bot" },
    }),
  );
  return createClient<paths, Media>({ baseUrl: url, headers: { Authorization: `Bearer ${registration.token}` } });
}

/** Plays a move, or repeats it with the same key. */
function send(player: Api, id: string, version: number, key: string, move: Schemas["Move"]) {
  return player.POST("/v1/games/{id}/moves", {
    params: { path: { id }, header: { "If-Match": tag(version), "Idempotency-Key": key } },
    body: move,
  });
}

/** A move at a version that the game does not have: nothing may change, and the error says why. */
async function playTooLate(player: Api, id: string, version: number, move: Schemas["Move"]): Promise<void> {
  const { error, response } = await send(player, id, version + 1, randomUUID(), move);
  check(error?.code === "stale-version", `expected stale-version, got ${response.status} ${error?.code}`);
  check(response.status === 412 && error.current_version === version, "the error tells the version");
}

/** Something of the table that only its ruleset has: the compiler knows by `ruleset` which table it is, and that none is left. */
function describe(table: Schemas["State"]): string {
  switch (table.ruleset) {
    case "leonardo":
      return `${table.deck_count} cards left`;
    case "quintis-fontis":
      return `${table.field.length} cards on the field`;
    case "leopard":
      return `${table.scored_hands.length} hands`;
    case "siggil":
      return `layout ${table.layout}`;
  }
}

/** All events of a game, page by page. */
async function allEvents(visitor: Api, id: string): Promise<Schemas["Event"][]> {
  const events: Schemas["Event"][] = [];
  let after: string | null = null;
  do {
    const query: { limit: number; after?: string } = after === null ? { limit: 100 } : { limit: 100, after };
    const page: Schemas["EventPage"] = must(
      await visitor.GET("/v1/games/{id}/events", { params: { path: { id }, query } }),
    );
    events.push(...page.items);
    after = page.next_after;
  } while (after !== null);
  return events;
}

/** Plays a game to its end; answers how many moves it took. */
async function play(url: string, visitor: Api, ruleset: Schemas["RulesetSummary"]): Promise<number> {
  const seats = Math.min(Math.max(ruleset.seats.min, 2), ruleset.seats.max);
  const creator = await register(url, visitor);
  const players = [creator];
  const created = must(
    await creator.POST("/v1/games", {
      params: { header: { "Idempotency-Key": randomUUID() } },
      body: { ruleset: ruleset.slug, seats },
    }),
  );
  const path = { id: created.id };
  while (players.length < seats) {
    const player = await register(url, visitor);
    const header = { "Idempotency-Key": randomUUID() };
    must(await player.POST("/v1/games/{id}/seats", { params: { path, header }, body: {} }));
    players.push(player);
  }

  let moves = 0;
  let game = must(await visitor.GET("/v1/games/{id}", { params: { path } }));
  while (game.to_move !== null) {
    const player = players[game.to_move.seat];
    check(player !== undefined, "whose turn it is has a seat");
    const legal = must(await player.GET("/v1/games/{id}/legal-moves", { params: { path } }));
    const move = legal.moves[randomInt(legal.moves.length)];
    check(move !== undefined, "whose turn it is has a legal move");
    if (moves === 0) await playTooLate(player, created.id, legal.version, move);
    const key = randomUUID();
    const answer = await send(player, created.id, legal.version, key, move);
    const played = must(answer);
    moves += 1;
    check(played.game.version > legal.version, "a move makes a new version");
    check(answer.response.headers.get("ETag") === tag(played.game.version), "the ETag is the version");
    if (moves === 1) {
      const again = await send(player, created.id, legal.version, key, move);
      check(again.response.headers.get("Idempotent-Replayed") === "true", "a repeat is answered as such");
      check(must(again).game.version === played.game.version, "a repeat plays nothing");
    }
    game = must(await visitor.GET("/v1/games/{id}", { params: { path } }));
  }

  check(game.status === "finished" && game.moves_count === moves, "the game is played to its end");
  check(game.state?.ruleset === ruleset.slug && describe(game.state) !== "", "the table is of the ruleset");
  check(game.outcome !== null, "a finished game has an outcome");
  const { ranking } = game.outcome;
  check(ranking.length === players.length && Math.min(...ranking.map(({ rank }) => rank)) === 1, "everybody is ranked");

  const record = must(await visitor.GET("/v1/games/{id}/record", { params: { path } }));
  check(record.moves.length === moves, "the record has every move");
  const ranks = (all: Schemas["Ranked"][]): string => all.map(({ seat, rank }) => `${seat}:${rank}`).join(" ");
  check(ranks(record.outcome.ranking) === ranks(ranking), "record and game have one outcome");

  const events = await allEvents(visitor, created.id);
  const played = events.filter((event) => event.type === "move_played" && event.move !== undefined);
  check(played.length === moves, `${moves} moves, but ${played.length} events of moves`);
  check(events.some((event) => event.type === "game_finished"), "the end is an event");
  return moves;
}

const url = process.argv[2];
check(url !== undefined, "the server's URL is missing");
const visitor = createClient<paths, Media>({ baseUrl: url });
const begun = performance.now();
const rulesets = must(await visitor.GET("/v1/rulesets")).items;
check(rulesets.length > 0, "a server has rulesets");
const played: string[] = [];
for (const ruleset of rulesets) {
  played.push(`${ruleset.slug} ${await play(url, visitor, ruleset)}`);
}
const seconds = ((performance.now() - begun) / 1000).toFixed(1);
console.log(`${played.length} games (moves: ${played.join(", ")}) in ${seconds} s`);
