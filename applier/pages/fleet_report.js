const open = () => { const one = document.getElementById(decodeURIComponent(location.hash.slice(1))); if (one) one.open = true; };
addEventListener("hashchange", open); open();
