// How members are called and reached.

export const roles = {
  ADMIN_ROLE_LEADER: "Leader",
  ADMIN_ROLE_FOLLOWER: "Follower",
  ADMIN_ROLE_LEARNER: "Learner",
  ADMIN_ROLE_REPLICA: "Replica",
};

export const states = {
  ADMIN_MEMBER_STATE_ONLINE: ["ok", "Online"],
  ADMIN_MEMBER_STATE_RECOVERING: ["warn", "Recovering"],
  ADMIN_MEMBER_STATE_UNREACHABLE: ["bad", "Away"],
};

export const away = (m) => m.state === "ADMIN_MEMBER_STATE_UNREACHABLE";

/** consoleOf is where a member's own console is. */
export const consoleOf = (m) => (m?.http_address ? `${location.protocol}//${m.http_address}/console/` : "");

/** judge says in a sentence how a group is. */
export function judge(g) {
  const out = g.members.filter(away);
  const need = Math.floor(g.voters / 2) + 1;
  const leader = g.members.find((m) => m.id === g.leader);
  if (g.voters_online < need) {
    return ["bad", "No majority", `${g.voters_online} of ${g.voters} voters answer, ${need} are needed. The group takes no writes until enough come back; nothing that was committed is lost.`];
  }
  if (g.leader === "0") return ["bad", "No leader is known", `${g.voters_online} of ${g.voters} voters answer. They are electing a leader; writes wait until there is one.`];
  if (!g.writable) return ["warn", `Member ${g.leader} leads, and does not take writes yet`, leader?.disk_full ? "Its disk is full." : "It applies what its log has, or waits for a majority."];
  const full = g.members.find((m) => m.disk_full);
  if (full) return ["warn", `The disk of member ${full.id} is full`, `Member ${g.leader} leads and takes writes.`];
  if (out.length) {
    const left = g.voters_online - need;
    return ["warn", `${out.length === 1 ? `Member ${out[0].id} is` : `Members ${out.map((m) => m.id).join(", ")} are`} away`, `Member ${g.leader} leads and takes writes. ${left > 0 ? `The group can lose ${left} more.` : "It can lose no other voter."}`];
  }
  const behind = g.members.filter((m) => m.state === "ADMIN_MEMBER_STATE_RECOVERING");
  if (behind.length) return ["warn", `Member ${behind.map((m) => m.id).join(", ")} is being given its data`, `Member ${g.leader} leads and takes writes.`];
  const one = g.members.length === 1;
  return ["ok", one ? "The member is well" : `All ${g.members.length} members are well`, `Member ${g.leader} leads and takes writes. ${g.voters - need > 0 ? `The group can lose ${g.voters - need} of ${g.voters} voters.` : "A single voter: there is no second copy of the data."}`];
}
